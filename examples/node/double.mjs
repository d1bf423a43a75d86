// Starts the test double and steers it: copy this file. It runs the program that
// EVENTSD names, else eventsd from the PATH. Build it, never spawn "go run":
// that would leave the server running.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'

export async function startDouble(...args) {
  const child = spawn(process.env.EVENTSD ?? 'eventsd', ['double', ...args], { stdio: ['ignore', 'pipe', 'inherit'] })
  await once(child, 'spawn') // throws where there is no such program
  const lines = {}
  for await (const line of createInterface({ input: child.stdout })) {
    const colon = line.indexOf(': ')
    lines[line.slice(0, colon)] = line.slice(colon + 2)
    if ('ready' in lines) break // it listens by now
  }
  if (!('ready' in lines)) throw new Error('eventsd ended before it was ready; it said why on stderr')

  async function control(method, path, body) {
    const response = await fetch(lines.control_url + path, {
      method,
      headers: { authorization: `Bearer ${lines.control_token}` },
      body: body && JSON.stringify(body),
    })
    const text = await response.text()
    if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${text}`)
    return text && JSON.parse(text)
  }

  return {
    baseURL: lines.base_url,
    key: lines.api_key,
    // A key is a tenant: with one each, tests do not meet. {id, key, user}
    newKey: (name) => control('POST', '/keys', { name }),
    // Replaces the faults of a user.
    faults: (user, ...faults) => control('PUT', `/faults?user=${user}`, faults),
    // What a user called, oldest first.
    requests: async (user) => (await control('GET', `/requests?user=${user}`)).data,
    reset: (user) => control('POST', `/reset?user=${user}`),
    control,
    async stop() {
      const ended = child.exitCode !== null || child.signalCode !== null
      child.kill()
      if (!ended) await once(child, 'exit')
    },
  }
}

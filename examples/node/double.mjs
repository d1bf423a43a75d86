// The test double for your tests: copy this file. Under "eventsd double -- npm test"
// it finds the double in the environment. Else it starts one: the program that
// EVENTSD names, or eventsd from the PATH.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'

export async function startDouble() {
  const { EVENTS_BASE_URL, EVENTS_CONTROL_URL, EVENTS_CONTROL_TOKEN, EVENTSD = 'eventsd' } = process.env
  if (EVENTS_CONTROL_URL) return steer(EVENTS_BASE_URL, EVENTS_CONTROL_URL, EVENTS_CONTROL_TOKEN)
  const child = spawn(EVENTSD, ['double', '-until-eof'], { stdio: ['pipe', 'pipe', 'inherit'] })
  await once(child, 'spawn') // throws if there is no such program
  const lines = {}
  for await (const line of createInterface({ input: child.stdout })) {
    const [name, value] = line.split(/: (.*)/)
    lines[name] = value
    if (name === 'ready') break // it listens by now
  }
  if (!lines.ready) throw new Error('eventsd ended before it was ready; stderr has the reason')
  // The double ends when its standard input does: with this process, however that
  // ends. So nothing needs to stop it, and this process does not wait for it.
  for (const handle of [child, child.stdin, child.stdout]) handle.unref()
  return steer(lines.base_url, lines.control_url, lines.control_token)
}

function steer(baseURL, controlURL, token) {
  async function control(method, path, body) {
    const response = await fetch(controlURL + path, {
      method,
      headers: { authorization: `Bearer ${token}` },
      body: body && JSON.stringify(body),
    })
    const text = await response.text()
    if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${text}`)
    return text && JSON.parse(text)
  }
  return {
    baseURL,
    control,
    // Creates a user with a key: with one each, tests don't see each other's events.
    // {id, key, user, base_url}
    newKey: (name) => control('POST', '/keys', { name }),
    // Sets a fault for the requests of a user.
    fail: (user, fault) => control('POST', '/faults', { ...fault, user }),
    // What a user called, oldest first.
    requests: async (user) => (await control('GET', `/requests?user=${user}`)).data,
    // The tries of an operation by a user, once count have arrived: each with
    // its status, its Idempotency-Key, and how many milliseconds it came after the one before.
    tries: async (user, operation, count = 0) => {
      const query = new URLSearchParams({ user, operation, count, wait: '5s' })
      const { data, timed_out: timedOut } = await control('GET', `/requests?${query}`)
      if (timedOut) throw new Error(`${data.length} of ${count} requests for ${operation}: ${JSON.stringify(data)}`)
      return data.map(({ status, header, fault, received }, i) => ({
        status,
        fault,
        key: header['Idempotency-Key']?.[0],
        after: i && new Date(received) - new Date(data[i - 1].received),
      }))
    },
    // How many events a user hosts, whatever the answers to their creates were.
    countEvents: async (user) =>
      (await control('GET', '/records')).filter(({ event }) => event?.host_id === user).length,
  }
}

// Whether all tries had one Idempotency-Key, so that they make one event.
export const sameKey = (tries) => tries.every(({ key }) => key && key === tries[0].key)

// The test double for your tests: copy this file. Under "eventsd double -- npm test", it finds the
// double in the environment. Otherwise it starts one: the program $EVENTSD, or eventsd.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'

export async function startDouble() {
  const { EVENTS_BASE_URL, EVENTS_CONTROL_URL, EVENTS_CONTROL_TOKEN, EVENTSD = 'eventsd' } = process.env
  if (EVENTS_CONTROL_URL) return connect(EVENTS_BASE_URL, EVENTS_CONTROL_URL, EVENTS_CONTROL_TOKEN)
  const child = spawn(EVENTSD, ['double', '-until-eof'], { stdio: ['pipe', 'pipe', 'inherit'] })
  await once(child, 'spawn') // throws if there is no such program
  const lines = {}
  for await (const line of createInterface({ input: child.stdout })) {
    const [name, value] = line.split(/: (.*)/)
    lines[name] = value
    if (name === 'ready') break // the double listens
  }
  if (!lines.ready) throw new Error('eventsd failed to start; see stderr')
  // The double ends when its stdin ends, so it ends with this process.
  for (const handle of [child, child.stdin, child.stdout]) handle.unref()
  return connect(lines.base_url, lines.control_url, lines.control_token)
}

function connect(baseURL, controlURL, token) {
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
    // Creates a user with a key: {id, key, user, base_url}. Each test needs its own.
    newKey: (name) => control('POST', '/keys', { name }),
    // Adds a fault for the requests of a user.
    fail: (user, fault) => control('POST', '/faults', { ...fault, user }),
    // Returns the requests of a user, oldest first.
    requests: async (user) => (await control('GET', `/requests?user=${user}`)).data,
    // Waits for count requests of a user for an operation. Returns the status, fault and Idempotency-Key of
    // each, and the milliseconds since the one before.
    tries: async (user, operation, count = 0) => {
      const query = new URLSearchParams({ user, operation, count, wait: '5s' })
      const { data, timed_out: timedOut } = await control('GET', `/requests?${query}`)
      if (timedOut) {
        throw new Error(`${data.length} of ${count} requests for ${operation}: ${JSON.stringify(data)}`)
      }
      return data.map(({ status, header, fault, received }, i) => ({
        status,
        fault,
        key: header['Idempotency-Key']?.[0],
        after: i && new Date(received) - new Date(data[i - 1].received),
      }))
    },
    // Returns the number of events of a user.
    countEvents: async (user) =>
      (await control('GET', '/records')).filter(({ event }) => event?.host_id === user).length,
  }
}

// Reports whether all attempts had the same Idempotency-Key.
export const sameKey = (tries) => tries.every(({ key }) => key && key === tries[0].key)

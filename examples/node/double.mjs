// The test double for your tests: copy this file, and double.d.mts if you use TypeScript. Under
// "eventsd double -- npm test", it finds the double in the environment. Otherwise it starts one: the program
// $EVENTSD, or eventsd.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'

export async function startDouble() {
  const { EVENTS_BASE_URL, EVENTS_CONTROL_URL, EVENTSD } = process.env
  if (EVENTS_CONTROL_URL) return connect(EVENTS_BASE_URL, EVENTS_CONTROL_URL)
  const child = spawn(EVENTSD || 'eventsd', ['double', '-until-eof'], { stdio: ['pipe', 'pipe', 'inherit'] })
  await once(child, 'spawn').catch(({ message }) => {
    throw new Error(`cannot start the test double: ${message}: build it in a checkout of events with ` +
      '"go build -o eventsd ./cmd/eventsd" and set EVENTSD to its path')
  })
  const lines = {}
  for await (const line of createInterface({ input: child.stdout })) {
    const [name, value] = line.split(/: (.*)/)
    lines[name] = value
    if (name === 'ready') break // the double listens
  }
  if (!lines.ready) throw new Error('eventsd failed to start; see stderr')
  // The double ends when its stdin ends, so it ends with this process.
  for (const handle of [child, child.stdin, child.stdout]) handle.unref()
  return connect(lines.base_url, lines.control_url)
}

function connect(baseURL, controlURL) {
  async function control(method, path, body) {
    const response = await fetch(controlURL + path, { method, body: body && JSON.stringify(body) })
    const text = await response.text()
    if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${text}`)
    return text && JSON.parse(text)
  }
  return {
    baseURL,
    control,
    // Creates a user with a key: {id, secret, user_id, base_url}. Give each test its own.
    newKey: (name) => control('POST', '/keys', { name }),
    // Adds a fault for a user's requests.
    fail: (user, fault) => control('POST', '/faults', { ...fault, user_id: user }),
    // Returns a user's requests, oldest first.
    requests: async (user) => (await control('GET', `/requests?user_id=${user}`)).data,
    // Waits for count requests of a user for an operation, and throws after 5 seconds. Returns the status,
    // fault and Idempotency-Key of each request, and the milliseconds since the request before.
    tries: async (user, operation, count = 0) => {
      const query = new URLSearchParams({ user_id: user, operation, count, wait: '5s' })
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
    // Returns the number of a user's events.
    countEvents: async (user) =>
      (await control('GET', '/records')).filter(({ event }) => event?.host_id === user).length,
  }
}

// Reports whether all attempts had the same Idempotency-Key.
export const sameKey = (tries) => tries.every(({ key }) => key && key === tries[0].key)

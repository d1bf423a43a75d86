// double.cjs 1.0: the test double of events, for your tests. Copy this file, and double.d.cts if you use
// TypeScript. It works with import { startDouble } from './double.cjs' and with require('./double.cjs').
//
// It uses no fetch and no timers, because test environments replace them.
'use strict'
const { spawn } = require('node:child_process')
const { request } = require('node:http')

// Returns the double of "eventsd double -- npm test". Without it, or with {own: true}, starts one with the
// program in EVENTSD, or eventsd.
async function startDouble({ own = false } = {}) {
  const { EVENTS_CONTROL_URL, EVENTS_BASE_URL, EVENTSD } = process.env
  if (EVENTS_CONTROL_URL && !own) {
    if (!/^http:\/\//i.test(EVENTS_CONTROL_URL)) {
      throw new Error(`EVENTS_CONTROL_URL is ${EVENTS_CONTROL_URL}: it must begin with http://`)
    }
    return connect(EVENTS_CONTROL_URL, async () => {}, EVENTS_BASE_URL)
  }
  const command = ['double', '-addr', '127.0.0.1:0', '-until-eof']
  const child = spawn(EVENTSD || 'eventsd', command, { stdio: ['pipe', 'pipe', 'inherit'] })
  const ended = new Promise((resolve) => child.once('exit', resolve))
  let output = ''
  const problem = await new Promise((resolve) => {
    child.once('error', (error) => resolve(error.message))
    child.stdout.once('close', () => resolve('it ended at once; see stderr'))
    child.stdout.setEncoding('utf8').on('data', (text) => {
      output += text
      if (/^ready: .*\n/m.test(output)) resolve()
    })
  })
  if (problem) {
    throw new Error(`cannot start a test double: EVENTSD is ${EVENTSD || 'missing'}: ${problem}: set ` +
      'EVENTSD to the program that "go build -o eventsd ./cmd/eventsd" builds in a clone of events' +
      (own ? '' : ', or EVENTS_CONTROL_URL to a double, as "eventsd double -- npm test" does'))
  }
  // The double ends with its stdin, so at the latest with this process, which doesn't wait for it.
  for (const handle of [child, child.stdin, child.stdout]) handle.unref()
  return connect(output.match(/^control_url: (.*)$/m)[1], async () => {
    child.ref()
    child.stdin.end()
    await ended
  })
}

function connect(controlURL, stop, baseURL = controlURL.replace('/_control', '/api/public/v1')) {
  // Sends a request to the control API and returns the value of the response.
  async function control(method, path, body) {
    const { error, status, text } = await send(method, controlURL + path, body)
    if (error) throw new Error(`no response from the double at ${controlURL}: ${error.message || error.code}`)
    if (status >= 300) throw new Error(`${method} ${path}: ${status} ${text}`)
    return text && JSON.parse(text)
  }
  const double = {
    baseURL,
    control,
    stop, // ends the double, but not that of "eventsd double --", which other tests need
    reset: () => control('POST', '/reset'), // removes everything, also the users of running tests

    // Creates a user with a key: {id, secret, user_id, base_url}. Give each test its own.
    newKey: (name) => control('POST', '/keys', { name }),
    issueKey: (user) => control('POST', '/keys', { user_id: user }), // another key of a user
    keys: async () => (await control('GET', '/keys')).data,

    // Returns everything that is stored: [{user: {…}}, {key: {…}}, {event: {…}}, …].
    records: () => control('GET', '/records'),
    apply: (records) => control('POST', '/records', records),
    countEvents: async (user) =>
      (await double.records()).filter(({ event }) => event?.host_id === user).length,

    // Adds a fault for a user's requests, or for all if user is null.
    async fail(user, fault) {
      if (!user && user !== null) throw new Error('fail: user is missing: pass its ID, or null for all users')
      return control('POST', '/faults', { ...fault, user_id: user })
    },
    faults: async () => (await control('GET', '/faults')).data,
    setFaults: async (faults) => (await control('PUT', '/faults', faults)).data,
    clearFault: (id) => control('DELETE', `/faults/${id}`),
    clearFaults: () => control('DELETE', '/faults'),

    // Returns a user's requests, or all without a user, oldest first. With a count, waits until so many have
    // arrived, by default at most 5s, and throws if they haven't.
    async requests(user, { operation, after, count, wait = count && '5s' } = {}) {
      const path = '/requests' + query({ user_id: user, operation, after, count, wait })
      const { data, timed_out: timedOut } = await control('GET', path)
      if (!timedOut) return data
      throw new Error(`${data.length} of ${count} requests arrived in ${wait}${lines(data)}`)
    },
    clearRequests: () => control('DELETE', '/requests'),

    // Returns a user's problems, or all without a user: [{kind, text, user_id}].
    problems: async (user) => (await control('GET', '/problems' + query({ user_id: user }))).data,
    // Throws if there are any. Call it after each test.
    async verify(user) {
      const problems = await double.problems(user)
      if (problems.length === 0) return
      const newest = (await double.requests(user)).slice(-20)
      const texts = problems.map(({ text }) => text).join('\n')
      throw new Error(`${texts}\nnewest requests:${lines(newest) || ' none'}`)
    },

    // All users share the clock, so a test that moves it needs a double of its own.
    now: async () => (await control('GET', '/clock')).now,
    setClock: async (now) => (await control('PUT', '/clock', { now })).now,
    advance: async (by) => (await control('POST', '/clock/advance', { by })).now, // such as '1h'
  }
  return double
}

function send(method, url, body) {
  return new Promise((resolve) => {
    const fail = (error) => resolve({ error })
    const sent = request(url, { method, agent: false }, (response) => {
      let text = ''
      response.setEncoding('utf8').on('data', (part) => { text += part }).on('error', fail)
      response.on('end', () => resolve({ status: response.statusCode, text }))
    })
    sent.on('error', fail).end(body && JSON.stringify(body))
  })
}

function query(parameters) {
  const given = Object.keys(parameters).filter((name) => parameters[name] != null)
  return '?' + given.map((name) => `${name}=${encodeURIComponent(parameters[name])}`).join('&')
}

// Returns requests as lines of text, with the time since the request before. Leaves out unencoded API keys.
const lines = (requests) => requests.map((r, i) => {
  let line = `\n${r.seq}: `
  const wait = i && Date.parse(r.received) - Date.parse(requests[i - 1].received)
  if (i) line += `+${(Math.max(0, wait) / 1000).toFixed(1)}s `
  line += `${r.method} ${r.path}${r.query && '?'}${r.query}`
  if (r.operation === 'POST /events/create') line += `, ${idempotencyKey(r)}`
  line += `: ${r.status}`
  const retryAfter = r.response_header?.['Retry-After']?.[0]
  if (retryAfter) line += `, Retry-After ${retryAfter}`
  if (r.fault) line += ` (${r.fault})`
  else if (r.status >= 400) line += `: ${r.response.slice(0, 200)}`
  return line
}).join('').replace(/svc_live_[\w.~-]+/g, 'svc_live_…')

function idempotencyKey(request) {
  const key = request.header['Idempotency-Key']
  return key ? `Idempotency-Key ${key}` : 'no Idempotency-Key'
}

// Throws unless all requests have the same Idempotency-Key.
function checkIdempotencyKeys(requests) {
  const keys = requests.map(idempotencyKey)
  if (new Set(keys).size === 1 && keys[0] !== 'no Idempotency-Key') return
  throw new Error(`want the same Idempotency-Key in all requests, got: ${keys.join(', ')}`)
}

module.exports = { startDouble, checkIdempotencyKeys }

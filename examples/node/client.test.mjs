// go build -o eventsd ../../cmd/eventsd, then: ./eventsd double -- node --test
// or let the tests start the double: EVENTSD=./eventsd node --test
import assert from 'node:assert/strict'
import { after, describe, test } from 'node:test'
import { Client } from './client.mjs'
import { checkIdempotencyKeys, startDouble } from './double.cjs'

const launch = { title: 'Launch', start_at: '2030-03-01T18:00:00Z', end_at: '2030-03-01T20:00:00Z' }
const create = 'POST /events/create'
const list = 'GET /events'
const double = await startDouble()
after(double.stop)

// Each test has a user of its own, named after it. Its client only notes how long it would sleep.
async function newUser(t) {
  const { secret: key, user_id: user } = await double.newKey(t.name)
  t.after(() => double.verify(user))
  const waits = []
  return { user, waits, client: new Client(double.baseURL, key, async (wait) => waits.push(wait)) }
}

describe('client', { concurrency: true }, () => {
  test('creates events', async (t) => {
    const { user, client } = await newUser(t)
    for (const number of ['000001', '000002']) {
      const event = await client.create(launch)
      assert.equal(event.id, `${user.replace('usr_', 'evt_')}_${number}`) // the same on every run
      assert.equal(event.host_id, user)
    }
    const [{ body }] = await double.requests(user)
    assert.deepEqual(JSON.parse(body), launch)
  })

  test('reads two pages, the second one in two attempts', async (t) => {
    const { user, client } = await newUser(t)
    const created = []
    for (let i = 0; i < 3; i++) created.unshift(await client.create(launch))
    await double.fail(user, { operation: list, status: 500, skip: 1, times: 1 })
    assert.deepEqual(await client.events(2), created)
    const attempts = await double.requests(user, { operation: list })
    assert.deepEqual(attempts.map(({ status }) => status), [200, 500, 200])
  })

  for (const [name, fault] of Object.entries({
    'status 408': { status: 408 },
    'status 429': { status: 429 },
    'status 500': { status: 500 },
    'status 503': { status: 503 },
    'status 504': { status: 504 },
    'an error page of a proxy': { status: 502, body: '<html>Bad gateway</html>' },
    'a lost request': { drop_request: true },
    'a lost response': { drop_response: true },
    'half a response': { cut_response: true },
    'a gateway that gave up': { drop_response: true, status: 504 },
  })) {
    test(`creates one event after ${name}`, async (t) => {
      const { user, client, waits } = await newUser(t)
      await double.fail(user, { operation: create, times: 1, ...fault })
      await client.create(launch)
      checkIdempotencyKeys(await double.requests(user, { operation: create, count: 2 }))
      assert.equal(await double.countEvents(user), 1)
      assert.equal(waits.length, 1)
    })
  }

  for (const status of [400, 401, 403, 404, 413, 422]) {
    test(`does not retry after status ${status}`, async (t) => {
      const { user, client } = await newUser(t)
      await double.fail(user, { operation: create, status })
      await assert.rejects(client.create(launch), new RegExp(status))
      assert.equal((await double.requests(user)).length, 1)
    })
  }

  test('gives up after waits of 1, 2, 4 and 8 seconds', async (t) => {
    const { user, client, waits } = await newUser(t)
    await double.fail(user, { operation: create, status: 500, times: 9 })
    await assert.rejects(client.create(launch), /500/)
    checkIdempotencyKeys(await double.requests(user, { operation: create, count: 5 }))
    assert.deepEqual(waits.map((wait, i) => Math.round(wait / 1000 / 2 ** i)), [1, 1, 1, 1])
    assert.ok(waits.some((wait) => wait % 1000), 'the waits have a random part')
  })

  test('waits as long as Retry-After says', async (t) => {
    const { user, client, waits } = await newUser(t)
    const date = new Date(Date.now() + 60_000).toUTCString()
    for (const value of ['20', date, new Date(0).toUTCString()]) {
      const header = { 'Retry-After': [value] }
      await double.fail(user, { operation: create, status: 429, header, times: 1 })
    }
    await client.create(launch)
    assert.equal(waits[0], 20_000)
    assert.ok(waits[1] > 50_000 && waits[1] <= 60_000, `${waits[1]} milliseconds until ${date}`)
    assert.ok(waits[2] >= 0)
  })

  test('accepts unknown values', async (t) => {
    const { user, client } = await newUser(t)
    await double.fail(user, { operation: create, patch: { status: 'archived', capacity: null } })
    const event = await client.create(launch)
    assert.equal(event.status, 'archived')
    assert.equal(event.capacity, null)
  })

  // A browser first asks about headers that it doesn't send itself.
  test('sends what a web page may send', async (t) => {
    const { user, client } = await newUser(t)
    await client.create(launch)
    const [{ header }] = await double.requests(user)
    const browser = /^(Accept|Connection|Content-Length|Sec-|User-)/
    const added = Object.keys(header).filter((name) => !browser.test(name)).map((name) => name.toLowerCase())
    const preflight = await fetch(`${double.baseURL}/events/create`, {
      method: 'OPTIONS',
      headers: {
        origin: 'http://localhost:5173',
        'access-control-request-method': 'POST',
        'access-control-request-headers': added.join(),
      },
    })
    assert.equal(preflight.status, 204)
    assert.equal(preflight.headers.get('access-control-allow-origin'), '*')
    const allowed = preflight.headers.get('access-control-allow-headers').split(', ')
    assert.deepEqual(added.filter((name) => !allowed.includes(name)), [])
  })
})

// All users of a double share its clock, so this test has one of its own.
test('moves the clock', async (t) => {
  const own = await startDouble({ own: true })
  t.after(own.stop)
  const client = new Client(own.baseURL, (await own.newKey('Grace')).secret)
  await client.create(launch)
  await own.advance('24h')
  await client.create(launch)
  const times = (await client.events()).map((event) => event.created_at)
  assert.deepEqual(times, ['2030-01-02T00:00:00Z', '2030-01-01T00:00:00Z'])
  await own.verify()
})

// A double of its own keeps this run successful.
test('finds mistakes', async (t) => {
  const own = await startDouble({ own: true })
  t.after(own.stop)
  const giveUp = async () => { throw new Error('gave up') }
  const client = new Client(own.baseURL, (await own.newKey('Grace')).secret, giveUp)
  await own.fail(null, { operation: create, drop_response: true, times: 1 })
  await assert.rejects(client.create(launch), /gave up/)
  await client.create(launch) // with another Idempotency-Key
  await assert.rejects(own.verify(), /unsafe retry/)
  await own.clearRequests()

  // Stops waiting for the first response, but leaves its connection open.
  const fault = await own.fail(null, { operation: create, delay: '1m', times: 1 })
  const waiting = client.create(launch)
  await Promise.race([waiting, own.requests(null, { count: 1 })])
  await client.create(launch)
  assert.equal((await own.problems()).length, 2)
  await own.clearFault(fault.id)
  await waiting

  const attempts = await own.requests(null, { operation: create })
  assert.throws(() => checkIdempotencyKeys(attempts), /want the same Idempotency-Key/)
  await assert.rejects(own.fail(null, { operation: 'POST /event', drop_request: true }), /it must be one of/)
  await assert.rejects(own.fail('', { operation: create, drop_request: true }), /user is missing/)
})

// go build -o eventsd ../../cmd/eventsd, then: ./eventsd double -- node --test
// or let the tests start the double: EVENTSD=./eventsd node --test
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { Client } from './client.mjs'
import { sameKey, startDouble } from './double.mjs'

const launch = { title: 'Launch', start_at: '2030-03-01T18:00:00Z', end_at: '2030-03-01T20:00:00Z' }
const create = 'POST /events/create'
const list = 'GET /events'
const double = await startDouble()

describe('client', { concurrency: true }, () => {
  // Each test has a user of its own, named after it. Its client only notes how long it would sleep.
  async function newUser(t) {
    const { secret: key, user_id: user } = await double.newKey(t.name)
    const waits = []
    return { user, waits, client: new Client(double.baseURL, key, async (wait) => waits.push(wait)) }
  }

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

  test('reads all pages, the second one in two attempts', async (t) => {
    const { user, client } = await newUser(t)
    const created = []
    for (let i = 0; i < 3; i++) created.unshift(await client.create(launch))
    await double.fail(user, { operation: list, status: 500, skip: 1, times: 1 })
    assert.deepEqual(await client.events(2), created)
    const tries = await double.tries(user, list)
    assert.deepEqual(tries.map((t) => t.status), [200, 500, 200])
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
      assert.ok(sameKey(await double.tries(user, create, 2)))
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
    assert.ok(sameKey(await double.tries(user, create, 5)))
    assert.deepEqual(waits.map((wait, i) => Math.round(wait / 1000 / 2 ** i)), [1, 1, 1, 1])
    assert.ok(waits.some((wait) => wait % 1000), 'the waits have a random part')
  })

  test('waits as long as Retry-After says', async (t) => {
    const { user, client, waits } = await newUser(t)
    const date = new Date(Date.now() + 60_000).toUTCString()
    for (const value of ['20', date]) {
      const header = { 'Retry-After': [value] }
      await double.fail(user, { operation: create, status: 429, header, times: 1 })
    }
    await client.create(launch)
    assert.equal(waits[0], 20_000)
    assert.ok(waits[1] > 50_000 && waits[1] <= 60_000, `${waits[1]} milliseconds until ${date}`)
  })

  test('accepts unknown values', async (t) => {
    const { user, client } = await newUser(t)
    await double.fail(user, { operation: create, patch: { status: 'archived', capacity: null } })
    const event = await client.create(launch)
    assert.equal(event.status, 'archived')
    assert.equal(event.capacity, null)
  })

  test('cannot set a fault for an unknown operation', async () => {
    const fault = { operation: 'POST /event', drop_request: true }
    await assert.rejects(double.fail('usr_owner', fault), /it must be one of/)
  })
})

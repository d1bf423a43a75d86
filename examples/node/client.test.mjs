// go build -o eventsd ../../cmd/eventsd, then: ./eventsd double -- node --test
// or let the tests start the double: EVENTSD=./eventsd node --test
import assert from 'node:assert/strict'
import { before, describe, test } from 'node:test'
import { Client } from './client.mjs'
import { sameKey, startDouble } from './double.mjs'

const launch = { title: 'Launch', start_at: '2030-03-01T18:00:00Z', end_at: '2030-03-01T20:00:00Z' }
const create = 'POST /events/create'

describe('client', { concurrency: true }, () => {
  let double
  before(async () => { double = await startDouble() })

  // Each test has a user of its own, named after it.
  async function newUser(t) {
    const { key, user } = await double.newKey(t.name)
    return { user, client: new Client(double.baseURL, key) }
  }

  test('creates an event', async (t) => {
    const { user, client } = await newUser(t)
    const event = await client.create(launch)
    assert.equal(event.id, `${user.replace('usr_', 'evt_')}_000001`) // the same on every run
    assert.equal(event.host_id, user)
  })

  test('reads all pages', async (t) => {
    const { user, client } = await newUser(t)
    const made = []
    for (let i = 0; i < 3; i++) made.unshift(await client.create(launch))
    assert.deepEqual(await client.events(2), made)
    const lists = (await double.requests(user)).filter((r) => r.operation === 'GET /events')
    assert.equal(lists.length, 2)
  })

  test('tries again after an error', async (t) => {
    const { user, client } = await newUser(t)
    await double.fail(user, { operation: create, status: 503, times: 2 })
    await client.create(launch)
    const tries = await double.tries(user, create, 3)
    assert.deepEqual(tries.map((t) => t.status), [503, 503, 201])
  })

  test('recognizes the error page of a proxy', async (t) => {
    const { user, client } = await newUser(t)
    await double.fail(user, { operation: create, status: 403, body: '<html>Forbidden</html>' })
    await assert.rejects(client.create(launch), /403 <html>/)
    const [refused] = await double.requests(user)
    assert.equal(refused.fault, 'status 403')
  })

  test('creates one event if the response is lost', async (t) => {
    const { user, client } = await newUser(t)
    await double.fail(user, { operation: create, lose: true, times: 1 })
    await client.create(launch)
    assert.equal(await double.countEvents(user), 1)
    const tries = await double.tries(user, create, 2)
    assert.deepEqual(tries.map((t) => t.status), [201, 201]) // both are carried out
    assert.deepEqual(tries.map((t) => t.fault), ['lose', ''])
    assert.ok(sameKey(tries))
    const [, again] = await double.requests(user)
    assert.deepEqual(JSON.parse(again.body), launch)
  })

  test('creates one event if a gateway gives up', async (t) => {
    const { user, client } = await newUser(t)
    await double.fail(user, { operation: create, lose: true, status: 504, times: 1 })
    await client.create(launch)
    assert.equal(await double.countEvents(user), 1)
    assert.ok(sameKey(await double.tries(user, create, 2)))
  })

  test('accepts unknown values', async (t) => {
    const { user, client } = await newUser(t)
    await double.fail(user, { operation: create, patch: { status: 'archived', capacity: null } })
    const event = await client.create(launch)
    assert.equal(event.status, 'archived')
    assert.equal(event.capacity, null)
  })

  test('tries again after half a response', async (t) => {
    const { user, client } = await newUser(t)
    await double.fail(user, { operation: create, cut: true, times: 1 })
    await client.create(launch)
    assert.equal((await double.tries(user, create, 2)).length, 2)
    assert.equal(await double.countEvents(user), 1)
  })

  test('gives up on a refusal', async (t) => {
    const { user, client } = await newUser(t)
    await double.fail(user, { operation: create, status: 429 })
    await assert.rejects(client.create(launch), /429/)
    assert.equal((await double.requests(user)).length, 1)
  })

  test('cannot set a fault for an unknown operation', async () => {
    const fault = { operation: 'POST /event', drop: true }
    await assert.rejects(double.fail('usr_owner', fault), /it must be one of/)
  })
})

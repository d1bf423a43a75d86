// go build -o eventsd ../../cmd/eventsd, then: ./eventsd double -- node --test
// or, where the test runner itself should start it: EVENTSD=./eventsd node --test
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
    assert.equal(event.id, 'evt_creates_an_event_dr2l_000001') // ids repeat: they can be written down
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

  test('tells the page of a proxy from an answer', async (t) => {
    const { user, client } = await newUser(t)
    await double.fail(user, { operation: create, status: 403, body: '<html>Forbidden</html>' })
    await assert.rejects(client.create(launch), /403 <html>/)
    const [refused] = await double.requests(user)
    assert.equal(refused.fault, 'status 403')
  })

  test('makes one event of a lost answer and its retry', async (t) => {
    const { user, client } = await newUser(t)
    await double.fail(user, { operation: create, lose: true, times: 1 })
    await client.create(launch)
    assert.equal(await double.countEvents(user), 1)
    const tries = await double.tries(user, create, 2)
    assert.deepEqual(tries.map((t) => [t.status, t.fault]), [[201, 'lose'], [201, '']]) // the work was done
    assert.ok(sameKey(tries))
    const [, again] = await double.requests(user)
    assert.deepEqual(JSON.parse(again.body), launch)
  })

  test('makes one event though a gateway gives up', async (t) => {
    const { user, client } = await newUser(t)
    await double.fail(user, { operation: create, lose: true, status: 504, times: 1 })
    await client.create(launch)
    assert.equal(await double.countEvents(user), 1)
    assert.ok(sameKey(await double.tries(user, create, 2)))
  })

  test('keeps what it does not know', async (t) => {
    const { user, client } = await newUser(t)
    await double.fail(user, { operation: create, patch: { status: 'archived', capacity: null } })
    const event = await client.create(launch)
    assert.equal(event.status, 'archived')
    assert.equal(event.capacity, null)
  })

  test('tries again after half an answer', async (t) => {
    const { user, client } = await newUser(t)
    await double.fail(user, { operation: create, cut: true, times: 1 })
    await client.create(launch)
    assert.equal((await client.events()).length, 1)
  })

  test('gives up on a refusal', async (t) => {
    const { user, client } = await newUser(t)
    await double.fail(user, { operation: create, status: 429 })
    await assert.rejects(client.create(launch), /429/)
    assert.equal((await double.requests(user)).length, 1)
  })

  test('hears of a fault that could never happen', async () => {
    await assert.rejects(double.fail('usr_owner', { operation: 'POST /event', drop: true }), /it must be one of/)
  })
})

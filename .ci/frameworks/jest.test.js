// Tests double.cjs in Jest, while timers are fake.
const { createEvent } = require('./client.cjs')
const { startDouble } = require('./double.cjs')

jest.useFakeTimers()
const lost = { operation: 'POST /events/create', drop_response: true, times: 1 }
let shared, user, key

beforeAll(async () => {
  shared = await startDouble()
})

beforeEach(async () => {
  ({ user_id: user, secret: key } = await shared.newKey(expect.getState().currentTestName))
})

afterEach(() => shared.verify(user))

test('creates one event', async () => {
  await shared.fail(user, lost)
  const status = await createEvent(shared.baseURL, { 'x-service-api-key': key, 'idempotency-key': '1' })
  expect(status).toBe(201)
  expect(await shared.countEvents(user)).toBe(1)
})

test('reports an unsafe retry', async () => {
  const own = await startDouble({ own: true })
  const grace = await own.newKey('Grace')
  await own.fail(grace.user_id, lost)
  expect(await createEvent(own.baseURL, { 'x-service-api-key': grace.secret })).toBe(201)
  await expect(own.verify(grace.user_id)).rejects.toThrow(/^unsafe retry: [^]*, no Idempotency-Key: 201$/)
  await own.stop()
  await expect(own.now()).rejects.toThrow(/no response/)
  await shared.stop()
  expect(await shared.problems()).toEqual([])
})

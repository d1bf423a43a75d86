// Tests double.cjs in vitest, while timers are fake.
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { createEvent } from './client.cjs'
import { startDouble } from './double.cjs'

vi.useFakeTimers()
const shared = await startDouble()
const lost = { operation: 'POST /events/create', drop_response: true, times: 1 }
let user: string, key: string

beforeEach(async ({ task }) => {
  const created = await shared.newKey(task.name)
  user = created.user_id
  key = created.secret
})

afterEach(() => shared.verify(user))

const requests = (count?: number) => shared.requests(user, { count }) // also without a count

test('creates one event', async () => {
  await shared.fail(user, lost)
  const status = await createEvent(shared.baseURL, { 'x-service-api-key': key, 'idempotency-key': '1' })
  expect(status).toBe(201)
  expect(await shared.countEvents(user)).toBe(1)
  expect(await requests()).toHaveLength(2)
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

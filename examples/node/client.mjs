// A small client of the events API. The base URL ends in /api/public/v1.
import { randomUUID } from 'node:crypto'

const TRIES = 3

export class Client {
  constructor(baseURL, key) {
    this.baseURL = baseURL
    this.key = key
  }

  // All events, newest first, read in pages of at most limit.
  async events(limit = 100) {
    const events = []
    const query = new URLSearchParams({ limit })
    for (;;) {
      const response = await fetch(`${this.baseURL}/events?${query}`, {
        headers: { 'x-service-api-key': this.key },
      })
      if (!response.ok) throw new Error(`events: ${response.status}`)
      const page = await response.json()
      events.push(...page.data)
      if (!page.has_more) return events
      query.set('cursor', page.next_cursor)
    }
  }

  // Tries again if there is no response, half of one, or a server error. All attempts have the same
  // Idempotency-Key, so they create one event.
  async create(event) {
    const idempotencyKey = randomUUID()
    for (let attempt = 1; ; attempt++) {
      try {
        const response = await fetch(`${this.baseURL}/events/create`, {
          method: 'POST',
          headers: {
            'x-service-api-key': this.key,
            'content-type': 'application/json',
            'idempotency-key': idempotencyKey,
          },
          body: JSON.stringify(event),
        })
        if (response.ok) return await response.json()
        if (response.status < 500) attempt = TRIES
        throw new Error(`create: ${response.status} ${await response.text()}`)
      } catch (error) {
        if (attempt >= TRIES) throw error
      }
    }
  }
}

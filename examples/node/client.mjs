// A small client of the events API. The base URL ends in /api/public/v1.
import { randomUUID } from 'node:crypto'

const TRIES = 3

export class Client {
  constructor(baseURL, key) {
    this.baseURL = baseURL
    this.key = key
  }

  async events() {
    const response = await fetch(`${this.baseURL}/events`, { headers: { 'x-service-api-key': this.key } })
    if (!response.ok) throw new Error(`events: ${response.status}`)
    return (await response.json()).data
  }

  // Tries again if there is no answer, or an error of the server. All tries have the
  // same Idempotency-Key, so there is one event however many of them reach the server.
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

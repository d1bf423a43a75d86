// A small client of the events API, for Node and web pages. The base URL ends with /api/public/v1.

// After these statuses the same request may succeed. Other errors are final.
const TEMPORARY = [408, 429, 500, 502, 503, 504]

export class Client {
  // sleep is a function that waits for some milliseconds. Tests replace it.
  constructor(baseURL, key, sleep = (wait) => new Promise((done) => setTimeout(done, wait))) {
    this.baseURL = baseURL
    this.key = key
    this.sleep = sleep
  }

  // Returns all events, newest first. Reads them in pages of at most limit.
  async events(limit = 100) {
    const events = []
    const query = new URLSearchParams({ limit })
    for (;;) {
      const page = await this.#send('GET', `/events?${query}`)
      events.push(...page.data)
      if (!page.has_more) return events
      query.set('cursor', page.next_cursor)
    }
  }

  // Creates an event and returns it.
  create(event) {
    return this.#send('POST', '/events/create', event)
  }

  // Sends a request. If the connection breaks or the status is temporary, waits and tries again, up to four
  // times. All attempts have the same Idempotency-Key, so a create that arrives twice creates one event.
  async #send(method, path, body) {
    const headers = { 'x-service-api-key': this.key }
    if (body) {
      headers['content-type'] = 'application/json'
      headers['idempotency-key'] = crypto.randomUUID()
    }
    for (let backoff = 1000; ; backoff *= 2) {
      let response, text, error
      try {
        const signal = AbortSignal.timeout(10_000)
        response = await fetch(this.baseURL + path, { method, headers, body: JSON.stringify(body), signal })
        text = await response.text()
      } catch (broken) { // no response, or half of one
        error = broken
      }
      if (!error && response.ok) return JSON.parse(text)
      const final = !error && !TEMPORARY.includes(response.status)
      error ??= new Error(`${method} ${path}: ${response.status} ${text}`)
      if (final || backoff > 8000) throw error
      await this.sleep(pause(response?.headers.get('retry-after'), backoff))
    }
  }
}

// Returns the milliseconds to wait before the next attempt: as long as Retry-After says, which is a number of
// seconds or a date, otherwise 10 % more or less than backoff, so that clients don't all return at once.
function pause(retryAfter, backoff) {
  if (/^\d+$/.test(retryAfter)) return retryAfter * 1000
  return Math.max(0, Date.parse(retryAfter) - Date.now()) || backoff * (0.9 + Math.random() / 5)
}

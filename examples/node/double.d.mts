// Types of double.mjs, for TypeScript.

// A fault, as docs/double.md describes it.
export interface Fault {
  operation: string // such as "POST /events/create"
  status?: number
  body?: string
  header?: Record<string, string[]>
  patch?: object
  delay?: string // such as "200ms"
  drop_request?: boolean
  drop_response?: boolean
  cut_response?: boolean
  skip?: number
  times?: number
  path?: string
}

// A request in the journal, with its response, whether or not the client got it.
export interface Request {
  seq: number
  time: string // by the double's clock
  received: string // by the system clock
  method: string
  path: string
  query: string
  header: Record<string, string[]>
  body: string
  operation: string // such as "GET /events/{id}", or empty
  user_id: string // or empty
  fault: string // such as "status 503, delay 200ms", or empty
  status: number // 0 if the request was dropped
  response_header: Record<string, string[]> // empty if the request was dropped
  response: string // body
  truncated: boolean // whether body or response was cut
}

export interface Try {
  status: number
  fault: string
  key?: string // Idempotency-Key
  after: number // milliseconds since the try before
}

export interface Double {
  baseURL: string
  control(method: string, path: string, body?: unknown): Promise<any>
  newKey(name: string): Promise<{ id: string; secret: string; user_id: string; base_url: string }>
  fail(user: string, fault: Fault): Promise<Fault & { id: string; hits: number }>
  requests(user: string): Promise<Request[]>
  tries(user: string, operation: string, count?: number): Promise<Try[]>
  countEvents(user: string): Promise<number>
}

export function startDouble(): Promise<Double>
export function sameKey(tries: Try[]): boolean

// Types of double.cjs 1.0, for TypeScript.

// A fault, as docs/double.md describes it.
export interface Fault {
  operation: string // such as "POST /events/create"
  status?: number | undefined
  body?: string | undefined
  header?: Record<string, string[]> | null | undefined
  patch?: object | null | undefined
  delay?: string | undefined // such as "200ms"
  drop_request?: boolean | undefined
  drop_response?: boolean | undefined
  cut_response?: boolean | undefined
  skip?: number | undefined
  times?: number | undefined
  user_id?: string | undefined
  path?: string | undefined
}

export interface SetFault extends Fault {
  id: string
  hits: number
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

export interface Problem {
  kind: string // such as "unsafe_retry", "unknown_route" or "unused_fault"
  text: string
  user_id: string // or empty
}

export interface NewKey {
  id: string
  secret: string
  user_id: string
  base_url: string
}

// Parameters of requests. With count, it waits until there are so many, by default at most "5s".
export interface Query {
  operation?: string | undefined
  after?: number | undefined // seq of a request
  count?: number | undefined
  wait?: string | undefined // such as "200ms"
}

export interface Double {
  baseURL: string
  control(method: string, path: string, body?: unknown): Promise<any>
  stop(): Promise<void>
  reset(): Promise<void>

  newKey(name: string): Promise<NewKey>
  issueKey(user: string): Promise<NewKey>
  keys(): Promise<any[]>

  records(): Promise<any[]>
  apply(records: object[]): Promise<{ applied: number; unchanged: number }>
  countEvents(user: string): Promise<number>

  fail(user: string | null, fault: Fault): Promise<SetFault>
  faults(): Promise<SetFault[]>
  setFaults(faults: Fault[]): Promise<SetFault[]>
  clearFault(id: string): Promise<void>
  clearFaults(): Promise<void>

  requests(user?: string | null, query?: Query): Promise<Request[]>
  clearRequests(): Promise<void>

  problems(user?: string | null): Promise<Problem[]>
  verify(user?: string | null): Promise<void>

  now(): Promise<string>
  setClock(now: string): Promise<string>
  advance(by: string): Promise<string>
}

export function startDouble(options?: { own?: boolean | undefined }): Promise<Double>
export function checkIdempotencyKeys(requests: Request[]): void

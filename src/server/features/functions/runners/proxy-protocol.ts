/** Protocol between runners for a forwarded call. */
import type { IncomingHttpHeaders } from "node:http"

/** Names of headers between runners. Clients cannot send them, and functions do not receive them. */
const names = {
  moved: "x-svc-moved",
  receiver: "x-svc-receiver",
  refused: "x-svc-refused"
} as const

/** Paths of forwarded client requests and of operations. */
export const paths = { request: "/request", operation: "/operation" } as const

/** Status of a runner that does not take a call. The call has not begun. */
const movedStatus = 421

type Head = readonly [status: number, headers: Readonly<Record<string, string>>]

/** Response of a runner that does not have the environment. */
export const movedResponse: Head = [movedStatus, { [names.moved]: "1", "content-length": "0" }]

/** Response to a call that does not name the process of its receiver, with the id of that. */
export const receiverResponse = (id: string): Head => [
  movedStatus,
  { [names.receiver]: id, "content-length": "0" }
]

/** Response to a call that is not of the cluster, or was sent before. */
export const refusedResponse: Head = [403, { [names.refused]: "1", "content-length": "0" }]

interface IncomingMessageHead {
  readonly headers: IncomingHttpHeaders
  readonly statusCode?: number | undefined
}

export const isMoved = ({ headers, statusCode }: IncomingMessageHead): boolean =>
  statusCode === movedStatus && headers[names.moved] === "1"

/** Whether a runner has refused a call. It sets no such header on the response of a function. */
export const isRefused = ({ headers }: IncomingMessageHead): boolean =>
  headers[names.refused] !== undefined

/** Returns the id that a receiver reports; undefined for another response. */
export const receiverOf = ({ headers, statusCode }: IncomingMessageHead): string | undefined => {
  const id = headers[names.receiver]
  return statusCode === movedStatus && typeof id === "string" ? id : undefined
}

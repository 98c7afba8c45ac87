/** Calls of clients that do nothing unusual. */
import type { TestPlayer } from "#testing/players"
import { responsesIn, Wire } from "../http/wire.ts"
import type { Way } from "./recorded-function.ts"

const patienceMillis = 40_000

/** Calls the function; returns what is wrong with the response, undefined if it is the caller's own. */
export const ordinaryCall = async (
  { host, name, path, url }: Way,
  { accessToken, id }: TestPlayer,
  call: string
): Promise<string | undefined> => {
  const wire = new Wire(url)
  const head = [
    `POST ${path}/upload/${call} HTTP/1.1`,
    `Host: ${host}`,
    `Authorization: Bearer ${accessToken}`,
    "Content-Length: 5",
    "Connection: close"
  ]
  wire.send(`${head.join("\r\n")}\r\n\r\nhello`)
  const ended = await wire.until(() => false, patienceMillis)
  wire.socket.destroy()
  const [response] = responsesIn(wire.received, [])
  if (!ended) return `waits in vain at ${name}`
  if (response === undefined) return `gets no response at ${name}`
  const { body, headers, status } = response
  const isOwn = headers.get("x-call") === call && headers.get("x-player") === id
  return status === 200 && isOwn && body === "5"
    ? undefined
    : `gets ${status} ${headers.get("x-call") ?? ""} ${body.slice(0, 300)} at ${name}`
}

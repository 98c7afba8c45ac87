/** A name server on this machine: answers DNS queries over UDP from a table. */
import { createSocket } from "node:dgram"
import { Effect } from "effect"

export const typeA = 1
const typeTxt = 16
export const typeAaaa = 28

type Answers = ReadonlyArray<ReadonlyArray<number>>

/** The answers to a type of query for a name; undefined: the server stays silent. */
type Zone = (type: number, name: string) => Answers | undefined

/** A response to a query with one question and an answer for each value. */
const responseTo = (query: Buffer, type: number, found: Answers) => {
  const header = Buffer.from(query.subarray(0, 12))
  header.writeUInt16BE(0x81_80, 2)
  header.writeUInt16BE(found.length, 6)
  header.writeUInt16BE(0, 10)
  const question = query.subarray(12, query.indexOf(0, 12) + 5)
  const answers = found.map((bytes) =>
    // A pointer to the name, the type, class IN, 60 seconds and the value.
    Buffer.from([0xc0, 12, 0, type, 0, 1, 0, 0, 0, 60, 0, bytes.length, ...bytes])
  )
  return Buffer.concat([header, question, ...answers])
}

/** The name of the question: labels with their lengths before them. */
const nameIn = (query: Buffer): string => {
  const labels: Array<string> = []
  for (let at = 12; (query[at] ?? 0) > 0; at += (query[at] ?? 0) + 1) {
    labels.push(query.toString("latin1", at + 1, at + 1 + (query[at] ?? 0)))
  }
  return labels.join(".").toLowerCase()
}

/** Starts the server; `queries` counts what it received. */
export const nameServer = (zone: Zone) =>
  Effect.acquireRelease(
    Effect.callback<{ readonly at: string; readonly queries: () => number; close: () => void }>(
      (resume) => {
        const socket = createSocket("udp4")
        let queries = 0
        socket.on("message", (query, { address, port }) => {
          queries += 1
          const type = query.readUInt16BE(query.indexOf(0, 12) + 1)
          const found = zone(type, nameIn(query))
          if (found !== undefined) socket.send(responseTo(query, type, found), port, address)
        })
        socket.bind(0, "127.0.0.1", () => {
          const at = `127.0.0.1:${socket.address().port}`
          resume(Effect.succeed({ at, queries: () => queries, close: () => void socket.close() }))
        })
      }
    ),
    ({ close }) => Effect.sync(close)
  )

/** Starts a server with TXT records by name; it is silent for names that have `undefined`. */
export const textRecordServer = (records: ReadonlyMap<string, ReadonlyArray<string> | undefined>) =>
  nameServer((type, name) => {
    if (records.has(name) && records.get(name) === undefined) return undefined
    if (type !== typeTxt) return []
    return (records.get(name) ?? []).map((value) => [value.length, ...Buffer.from(value, "latin1")])
  })

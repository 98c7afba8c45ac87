/** Names of webhooks: both kinds of addresses, slow name servers, and an end on request. */
import { createSocket } from "node:dgram"
import type { LookupAddress } from "node:dns"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { type Resolve, resolveByDns, resolveBySystem } from "#server/platform/name-resolution"

const typeA = 1
const typeAaaa = 28

/** The addresses that a name server returns for a type of query; undefined: it stays silent. */
type Zone = (type: number) => ReadonlyArray<ReadonlyArray<number>> | undefined

/** A response to a query with one question and an answer for each address. */
const responseTo = (query: Buffer, type: number, found: ReadonlyArray<ReadonlyArray<number>>) => {
  const header = Buffer.from(query.subarray(0, 12))
  header.writeUInt16BE(0x81_80, 2)
  header.writeUInt16BE(found.length, 6)
  header.writeUInt16BE(0, 10)
  const question = query.subarray(12, query.indexOf(0, 12) + 5)
  const answers = found.map((bytes) =>
    // A pointer to the name, the type, class IN, 60 seconds and the address.
    Buffer.from([0xc0, 12, 0, type, 0, 1, 0, 0, 0, 60, 0, bytes.length, ...bytes])
  )
  return Buffer.concat([header, question, ...answers])
}

/** A name server on this machine; `queries` counts what it received. */
const nameServer = (zone: Zone) =>
  Effect.acquireRelease(
    Effect.callback<{ readonly at: string; readonly queries: () => number; close: () => void }>(
      (resume) => {
        const socket = createSocket("udp4")
        let queries = 0
        socket.on("message", (query, { address, port }) => {
          queries += 1
          const type = query.readUInt16BE(query.indexOf(0, 12) + 1)
          const found = zone(type)
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

type Outcome = { readonly error: Error | null; readonly addresses: ReadonlyArray<LookupAddress> }

const resolveWith = (search: Resolve, name: string, signal = new AbortController().signal) =>
  Effect.callback<Outcome>((resume) =>
    search(name, (error, addresses) => resume(Effect.succeed({ error, addresses })), signal)
  )

const resolve = (server: string, signal?: AbortSignal) =>
  resolveWith(resolveByDns([server]), "hook.example", signal)

const v4 = [[8, 8, 8, 8]]
const v6 = [[0x26, 0x06, 0x47, 0, ...Array.from({ length: 11 }, () => 0), 1]]

describe("names of webhooks", () => {
  it.live("finds the IPv4 and IPv6 addresses of a name", () =>
    Effect.gen(function* () {
      const { at } = yield* nameServer((type) => (type === typeA ? v4 : v6))
      const { addresses, error } = yield* resolve(at)
      assert.isNull(error)
      assert.sameDeepMembers(
        [...addresses],
        [
          { address: "8.8.8.8", family: 4 },
          { address: "2606:4700::1", family: 6 }
        ]
      )
    })
  )

  it.live("takes the IPv4 addresses when the IPv6 ones do not come", () =>
    Effect.gen(function* () {
      const { at } = yield* nameServer((type) => (type === typeA ? v4 : undefined))
      const { addresses, error } = yield* resolve(at)
      assert.isNull(error)
      assert.deepStrictEqual([...addresses], [{ address: "8.8.8.8", family: 4 }])
    })
  )

  it.live("fails for a name without addresses", () =>
    Effect.gen(function* () {
      const { at } = yield* nameServer(() => [])
      const { addresses, error } = yield* resolve(at)
      assert.isNotNull(error)
      assert.isEmpty(addresses)
    })
  )

  it.live("fails for a name that the system does not know", () =>
    Effect.gen(function* () {
      const { addresses, error } = yield* resolveWith(resolveBySystem, "hook.invalid")
      assert.isNotNull(error)
      assert.deepStrictEqual(addresses, [])
    })
  )

  it.live("ends the search when the request does, also with a silent name server", () =>
    Effect.gen(function* () {
      const { at, queries } = yield* nameServer((type) => (type === typeAaaa ? v6 : undefined))
      const ended = new AbortController()
      const search = yield* Effect.forkChild(resolve(at, ended.signal), { startImmediately: true })
      while (queries() < 2) yield* Effect.yieldNow
      assert.isUndefined(search.pollUnsafe())
      ended.abort()
      while (search.pollUnsafe() === undefined) yield* Effect.yieldNow
      assert.strictEqual(queries(), 2)
    })
  )
})

/** Names of webhooks: both kinds of addresses, slow name servers, and an end on request. */
import type { LookupAddress } from "node:dns"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { type Resolve, resolveByDns, resolveBySystem } from "#server/platform/name-resolution"
import { nameServer, typeA, typeAaaa } from "../support/name-server.ts"

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

  it.live("takes the IPv4 addresses of a name when the IPv6 ones do not come", () =>
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

  it.live("ends the search for a name when the request ends, also with a silent name server", () =>
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

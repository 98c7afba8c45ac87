/**
 * Saves under concurrent writers on two nodes with one database: no update is lost, and no version is
 * issued twice, with concurrent writes and deletes.
 */
import { assert, layer } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { at, type TestResponse } from "#testing/players"
import { addressOfNode, nodeWith, SharedDatabase } from "../../support/http-stack.ts"
import { type Ask, codeOf, newGame } from "../../support/players.ts"

const Node = nodeWith().pipe(Layer.provideMerge(SharedDatabase.layer))

const path = "/v1/saves/shared"

/** A player with requests to two nodes. */
const onTwoNodes = Effect.gen(function* () {
  const { player, url } = yield* newGame({ features: { saves: true } })
  const other = yield* Layer.build(Layer.fresh(nodeWith()))
  const urls = [url, yield* Effect.provideContext(addressOfNode, other)]
  return urls.map((node) => player.askAt(node))
})

/** Runs `count` writers concurrently, alternating between the nodes. */
const writers = <A>(
  nodes: ReadonlyArray<Ask>,
  count: number,
  write: (ask: Ask, index: number) => Effect.Effect<A>
) =>
  Effect.forEach(
    Array.from({ length: count }, (_, index) => nodes[index % nodes.length]),
    (ask, index) => (ask === undefined ? Effect.die("Expected a node") : write(ask, index)),
    { concurrency: "unbounded" }
  )

const versionOf = ({ body }: { readonly body: unknown }) => Number(at(body, "version"))

/** Increments a save by compare-and-set, with retries. */
const increment = (ask: Ask): Effect.Effect<void> =>
  Effect.gen(function* () {
    const { body, status } = yield* ask("GET", path)
    const [data, ifVersion] = status === 404 ? [0, 0] : [body.data, body.version]
    const written = yield* ask("PUT", path, { data: Number(data) + 1, ifVersion })
    if (written.status === 409) return yield* increment(ask)
    assert.strictEqual(written.status, 200)
  })

layer(Node)("saves on two nodes", (it) => {
  it.effect(
    "loses no update of a save that 8 writers on two nodes increment eight times each",
    () =>
      Effect.gen(function* () {
        const nodes = yield* onTwoNodes
        yield* writers(nodes, 8, (ask) =>
          Effect.forEach(Array.from({ length: 8 }), () => increment(ask), { discard: true })
        )
        for (const ask of nodes) {
          const { body } = yield* ask("GET", path)
          assert.strictEqual(body.data, 64)
          assert.strictEqual(body.version, 64)
        }
      })
  )

  it.effect("issues consecutive versions to unconditional writes", () =>
    Effect.gen(function* () {
      const nodes = yield* onTwoNodes
      const answers = yield* writers(nodes, 40, (ask, index) => ask("PUT", path, { data: index }))
      const versions = answers.map(versionOf).toSorted((a, b) => a - b)
      assert.deepStrictEqual(
        versions,
        Array.from({ length: 40 }, (_, index) => index + 1)
      )
      const last = answers.findIndex((answer) => versionOf(answer) === 40)
      const [ask] = nodes
      const read = ask === undefined ? undefined : yield* ask("GET", path)
      assert.strictEqual(read?.body.data, last)
    })
  )

  it.effect(
    "lets exactly one of several conditional writes of one version succeed",
    () =>
      Effect.gen(function* () {
        const nodes = yield* onTwoNodes
        const winners = (
          answers: ReadonlyArray<{ readonly status: number; readonly body: unknown }>
        ) => {
          for (const answer of answers) {
            if (answer.status !== 200) assert.match(String(codeOf(answer)), /conflict|not_found/)
          }
          return answers.filter(({ status }) => status === 200).length
        }
        for (const round of [0, 2, 4, 6, 8]) {
          const created = yield* writers(nodes, 8, (ask, data) =>
            ask("PUT", path, { data, ifVersion: 0 })
          )
          assert.strictEqual(winners(created), 1)
          const ifVersion = round + 1
          const replaced = yield* writers(nodes, 8, (ask, data) =>
            ask("PUT", path, { data, ifVersion })
          )
          assert.strictEqual(winners(replaced), 1)
          const deleted = yield* writers(nodes, 8, (ask) =>
            ask("DELETE", `${path}?ifVersion=${ifVersion + 1}`)
          )
          assert.strictEqual(winners(deleted), 1)
        }
      }),
    { tags: "long" }
  )

  it.effect(
    "only increases versions of a save under concurrent writes and deletes",
    () =>
      Effect.gen(function* () {
        const nodes = yield* onTwoNodes
        const answers = yield* writers(nodes, 60, (ask, index): Effect.Effect<TestResponse> =>
          index % 3 === 0 ? ask("DELETE", path) : ask("PUT", path, { data: index })
        )
        const versions = answers.filter((_, index) => index % 3 !== 0).map(versionOf)
        assert.deepStrictEqual(
          versions.toSorted((a, b) => a - b),
          Array.from({ length: 40 }, (_, index) => index + 1)
        )
        const [ask] = nodes
        const list = ask === undefined ? undefined : yield* ask("GET", "/v1/saves")
        const count = Array.from(Object(list?.body.saves)).length
        const full = yield* writers(nodes, 100 - count, (put, index) =>
          put("PUT", `/v1/saves/k${index}`, { data: 1 })
        )
        // The stored count of saves is exact afterwards.
        assert.isTrue(full.every(({ status }) => status === 200))
        const over =
          ask === undefined ? undefined : yield* ask("PUT", "/v1/saves/over", { data: 1 })
        assert.strictEqual(over?.status, 409)
      }),
    { tags: "long" }
  )
})

/** `svc share`: labelled links, and counts of visits. */
import { assert, layer } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { at } from "#testing/players"
import { makeFolder } from "../support/cli/svc.ts"
import {
  addressOfNode,
  configure,
  makeTenants,
  nodeWith,
  SharedDatabase
} from "../support/http-stack.ts"
import { ask } from "../support/moderation-calls.ts"

const Node = nodeWith().pipe(Layer.provideMerge(SharedDatabase.layer))

layer(Node)("svc share", (it) => {
  it.effect("makes a labelled link, and lists it with its visits", () =>
    Effect.gen(function* () {
      const url = yield* addressOfNode
      const { development } = yield* makeTenants
      const target = { url, ...development }
      const env = { SVC_URL: url, SVC_SECRET_KEY: development.secretKey }
      const folder = yield* makeFolder(env)
      const refused = yield* folder.svc("share link spring")
      assert.strictEqual(refused.code, 1)
      assert.match(refused.stderr, /share_links_disabled/)
      assert.match(refused.stderr, /Set share\.links\.enabled to true in svc\.config\.json/)

      yield* configure(development, {
        share: { links: { enabled: true }, tracking: { enabled: true } }
      })
      const made = yield* folder.svc("share link spring --json")
      assert.strictEqual(made.code, 0, made.stderr)
      const shareId = String(at(JSON.parse(made.stdout), "link", "id"))
      yield* ask(target, "share/visits", { shareId, landed: true })
      const shown = yield* folder.svc("share stats")
      assert.strictEqual(shown.code, 0, shown.stderr)
      assert.match(shown.stdout, /: visits 1, new players 0, plays 0/)
      assert.match(shown.stdout, new RegExp(`spring +${shareId} +1 +0 +0`))
      const none = yield* folder.svc("share stats --to 2026-01-02 --json")
      assert.strictEqual(at(JSON.parse(none.stdout), "totals", "visits"), 0)
      const wrong = yield* folder.svc("share stats --from yesterday")
      assert.strictEqual(wrong.code, 2)
      assert.match(wrong.stderr, /invalid_request/)
      assert.match(wrong.stderr, /from: Expected an existing day/)
    })
  )
})

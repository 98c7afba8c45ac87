/** The typed client's share links, against the real service. */
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { createClient, isError, memoryStorage } from "#client/client"
import { TestApp } from "#testing/app"
import { configure } from "#testing/players"
import { rejection } from "../support/client/waits.ts"
import { AppLive } from "../support/service.ts"

const newClient = Effect.fnUntraced(function* (share: object) {
  const app = yield* TestApp
  yield* configure(app, { share })
  const { publishableKey: key, url: baseUrl } = app
  return () => createClient({ baseUrl, key, storage: memoryStorage() })
})

const ask = <A>(call: () => Promise<A>) => Effect.promise(call)

const links = { enabled: true, text: "Beat {score}!" }

layer(AppLive, { timeout: "120 seconds", excludeTestServices: true })("share links", (it) => {
  it.effect(
    "carries a challenge to the next player by a share link, and counts the visitor once",
    () =>
      Effect.gen(function* () {
        const make = yield* newClient({ links, tracking: { enabled: true } })
        const ada = make()
        const shared = yield* ask(() => ada.share.link({ score: 1500 }))
        assert.strictEqual(shared.post.text, "Beat 1,500!")
        const address = `https://game.example/?ks=${shared.link.slice(-10)}`

        const visitor = make()
        const link = yield* ask(() => visitor.share.opened(address))
        assert.strictEqual(link?.kind, "challenge")
        assert.strictEqual(link?.score, 1500)
        assert.isNull(visitor.sessions.player)
        assert.strictEqual(yield* ask(() => visitor.share.opened(address)), link)
        yield* ask(() => visitor.sessions.ensure())
        assert.isTrue(yield* ask(() => visitor.share.played()))
        assert.isFalse(yield* ask(() => visitor.share.played()))
      })
  )

  it.effect("finds no share link on a page that no link or an unknown link has opened", () =>
    Effect.gen(function* () {
      const make = yield* newClient({ links })
      for (const address of ["https://game.example/", "https://game.example/?ks=0123456789"]) {
        const client = make()
        assert.isNull(yield* ask(() => client.share.opened(address)))
        assert.isFalse(yield* ask(() => client.share.played()))
      }
      assert.isNull(yield* ask(() => make().share.opened()))
      assert.isFalse(
        yield* ask(() => make().share.post({ link: "x", imageUrl: null, post: noPost }))
      )
    })
  )

  it.effect("finds the link that opened a page also while visits are not counted", () =>
    Effect.gen(function* () {
      const make = yield* newClient({ links })
      const shared = yield* ask(() => make().share.link())
      const visitor = make()
      const address = `https://game.example/?ks=${shared.link.slice(-10)}`
      assert.strictEqual((yield* ask(() => visitor.share.opened(address)))?.kind, "plain")
      assert.isFalse(yield* ask(() => visitor.share.played()))
    })
  )

  it.effect("opens a share link again after a failure", () =>
    Effect.gen(function* () {
      const make = yield* newClient({ links })
      const shared = yield* ask(() => make().share.link())
      const address = `https://game.example/?ks=${shared.link.slice(-10)}`
      const visitor = make()
      yield* newClient({})
      const refused = yield* rejection(() => visitor.share.opened(address))
      assert.isTrue(isError(refused, "share_links_disabled"))
      yield* newClient({ links })
      assert.strictEqual((yield* ask(() => visitor.share.opened(address)))?.kind, "plain")
    })
  )

  it.effect("names no X profile of a player without an account at X", () =>
    Effect.gen(function* () {
      const make = yield* newClient({ links })
      const client = make()
      const { id } = yield* ask(() => client.sessions.ensure())
      assert.isTrue(isError(yield* rejection(() => client.share.xProfile()), "identity_not_linked"))
      const shown = yield* rejection(() => client.share.showXProfile(true))
      assert.isTrue(isError(shown, "identity_not_linked"))
      assert.deepStrictEqual(yield* ask(() => client.share.xProfiles([id])), {})
    })
  )
})

const noPost = { text: null, hashtags: [], via: null }

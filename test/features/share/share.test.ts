/** Share links and card tags. */
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { TestClock } from "effect/testing"
import { SqlClient } from "effect/sql"
import { at, guest, request, type TestTarget } from "#testing/players"
import { ask, codeOf, operate, play } from "../../support/moderation-calls.ts"
import { appOf, share, ShareNode } from "../../support/share-links.ts"

const read = ({ publishableKey, url }: TestTarget, path: string) =>
  request(`${url}/v1/share/${path}`, { headers: { "x-svc-key": publishableKey } })

layer(ShareNode)("a share link", (it) => {
  it.effect("creates a share link with an address, a picture and a suggested text", () =>
    Effect.gen(function* () {
      const { target } = yield* appOf()
      const ada = yield* guest(target, "Ada")
      const { body, id } = yield* share(target, ada, { kind: "score", score: 1500 })
      assert.match(id, /^[0-9A-Za-z]{10}$/)
      assert.strictEqual(body.link, `https://play.example.com/s/${id}`)
      assert.match(String(body.imageUrl), new RegExp(`--dev/${id}\\.png$`))
      assert.deepStrictEqual(body.post, {
        text: "I made 1,500!",
        hashtags: ["starracer"],
        via: "studio"
      })
    })
  )

  it.effect("opens the first allowed origin that is a page", () =>
    Effect.gen(function* () {
      const { target } = yield* appOf({
        share: { links: { enabled: true } },
        web: {
          allowedOrigins: ["https://*.example.com", "capacitor://localhost", "https://game.example"]
        }
      })
      const ada = yield* guest(target, "Ada")
      const { body, id } = yield* share(target, ada, { kind: "plain" })
      assert.strictEqual(body.link, `https://game.example/?ks=${id}`)
      assert.isNull(body.imageUrl)
      assert.deepStrictEqual(body.post, { text: null, hashtags: [], via: null })
    })
  )

  it.effect("restores a challenge, with the name only where it is wanted", () =>
    Effect.gen(function* () {
      const { target } = yield* appOf()
      const ada = yield* guest(target, "Ada")
      const named = yield* share(target, ada, { kind: "challenge", score: -2.5, showName: true })
      const { body } = yield* read(target, `links/${named.id}`)
      assert.deepStrictEqual(at(body, "link", "score"), -2.5)
      assert.deepStrictEqual(at(body, "link", "kind"), "challenge")
      assert.deepStrictEqual(at(body, "link", "displayName"), "Ada")
      const nameless = yield* share(target, ada, { kind: "plain" })
      const other = (yield* read(target, `links/${nameless.id}`)).body
      assert.isNull(at(other, "link", "displayName"))
      assert.isNull(at(other, "link", "score"))
    })
  )

  it.effect("returns the data of a share link to those who open it, up to 1 KiB of texts", () =>
    Effect.gen(function* () {
      const { target } = yield* appOf()
      const ada = yield* guest(target, "Ada")
      const data = { room: "7KMB2P", note: "{room} ü" }
      const { id } = yield* share(target, ada, { kind: "plain", data })
      assert.deepStrictEqual(at((yield* read(target, `links/${id}`)).body, "link", "data"), data)
      const without = yield* share(target, ada, { kind: "plain" })
      assert.isNull(at((yield* read(target, `links/${without.id}`)).body, "link", "data"))
      const largest = { a: "x".repeat(1024 - '{"a":""}'.length) }
      yield* share(target, ada, { kind: "plain", data: largest })
      for (const bad of [
        { a: `${largest.a}x` },
        { a: 1 },
        { a: "\u0000" },
        { a: { b: "c" } },
        "text"
      ]) {
        const refused = yield* play(target, ada, "POST", "share/links", {
          kind: "plain",
          data: bad
        })
        assert.strictEqual(refused.status, 400, JSON.stringify(bad))
      }
    })
  )

  it.effect("hides the name of a banned player until the ban ends", () =>
    Effect.gen(function* () {
      const { target } = yield* appOf()
      const ada = yield* guest(target, "Ada")
      const { id } = yield* share(target, ada, { kind: "plain", showName: true })
      const nameNow = Effect.map(read(target, `links/${id}`), ({ body }) =>
        at(body, "link", "displayName")
      )
      const ban = { durationHours: 1, reason: "Cheating" }
      const path = `players/${ada.id}`
      assert.strictEqual((yield* operate(target, "POST", `${path}/ban`, ban)).status, 200)
      assert.isNull(yield* nameNow)
      yield* TestClock.adjust("61 minutes")
      assert.strictEqual(yield* nameNow, "Ada")
      yield* operate(target, "POST", `${path}/ban`, { reason: "Again" })
      assert.isNull(yield* nameNow)
      yield* operate(target, "POST", `${path}/unban`, {})
      assert.strictEqual(yield* nameNow, "Ada")
    })
  )

  it.effect("never shows the name of a child, also of one who declares it later", () =>
    Effect.gen(function* () {
      const { target } = yield* appOf()
      const ada = yield* guest(target, "Ada")
      const { id } = yield* share(target, ada, { kind: "plain", showName: true })
      yield* play(target, ada, "PUT", "social/age", { band: "child" })
      assert.isNull(at((yield* read(target, `links/${id}`)).body, "link", "displayName"))
    })
  )

  it.effect("refuses a share link with a score that is no number, or does not fit its kind", () =>
    Effect.gen(function* () {
      const { target } = yield* appOf()
      const ada = yield* guest(target, "Ada")
      for (const link of [
        { kind: "score" },
        { kind: "challenge", score: "7" },
        { kind: "plain", score: 7 },
        { kind: "other" },
        {}
      ]) {
        const answer = yield* play(target, ada, "POST", "share/links", link)
        assert.strictEqual(codeOf(answer), "invalid_request", JSON.stringify(link))
      }
    })
  )

  it.effect(
    "answers not_found for a share link that is of another environment, unknown or no id",
    () =>
      Effect.gen(function* () {
        const { target } = yield* appOf()
        const { target: foreign } = yield* appOf()
        const ada = yield* guest(foreign, "Ada")
        const { id } = yield* share(foreign, ada, { kind: "plain" })
        for (const unknown of [id, "0123456789", "x", "'%20or%20true--", "%F0%9F%9A%80"]) {
          assert.strictEqual(codeOf(yield* read(target, `links/${unknown}`)), "not_found", unknown)
          const visit = yield* ask(target, "share/visits", { shareId: unknown, landed: true })
          assert.strictEqual(codeOf(visit), "not_found", unknown)
        }
      })
  )

  it.effect("answers 404 to requests for share links, visits and tags that are off", () =>
    Effect.gen(function* () {
      const { target } = yield* appOf({})
      const ada = yield* guest(target, "Ada")
      const made = yield* play(target, ada, "POST", "share/links", { kind: "plain" })
      const labelled = yield* operate(target, "POST", "share/links", { label: "spring" })
      const found = yield* read(target, "links/0123456789")
      for (const answer of [made, labelled, found]) {
        assert.strictEqual(answer.status, 404)
        assert.strictEqual(codeOf(answer), "share_links_disabled")
      }
      const visit = yield* ask(target, "share/visits", { shareId: "0123456789", landed: true })
      assert.deepStrictEqual([visit.status, codeOf(visit)], [404, "share_tracking_disabled"])
      const tags = yield* read(target, "tags")
      assert.deepStrictEqual([tags.status, codeOf(tags)], [404, "share_tags_disabled"])
    })
  )

  it.effect("keeps only the newest 500 share links of a player", () =>
    Effect.gen(function* () {
      const { target, tenant } = yield* appOf()
      const ada = yield* guest(target, "Ada")
      const sql = yield* SqlClient.SqlClient
      yield* sql`
        insert into share_links
        select lpad(n::text, 10, 'a'), ${tenant.environmentId}, ${ada.id}, 'plain', null, false, null,
          to_timestamp(n - 1000)
        from generate_series(1, 500) as n`
      const { id } = yield* share(target, ada, { kind: "plain" })
      const rows = yield* sql<{ readonly id: string }>`
        select id from share_links where player_id = ${ada.id} order by created_at`
      assert.strictEqual(rows.length, 500)
      assert.strictEqual(rows[0]?.id, "aaaaaaaaa2")
      assert.strictEqual(rows.at(-1)?.id, id)
    })
  )

  it.effect("shows a built-in page for a share link where the app has none", () =>
    Effect.gen(function* () {
      const { target } = yield* appOf()
      const ada = yield* guest(target, "<Ada>")
      const { id } = yield* share(target, ada, { kind: "plain" })
      const page = yield* request(`${target.url}/s/${id}`)
      assert.strictEqual(page.status, 200)
      assert.match(String(page.body), /property="og:image" content="[^"]+\.png"/)
      assert.strictEqual((yield* request(`${target.url}/s/0123456789`)).status, 404)
      assert.strictEqual((yield* request(`${target.url}/s/%00`)).status, 404)
    })
  )
})

layer(ShareNode)("card tags", (it) => {
  it.effect("names the picture of the link in card tags, or the app's for an unknown link", () =>
    Effect.gen(function* () {
      const { target } = yield* appOf()
      const ada = yield* guest(target, "Ada")
      const { id } = yield* share(target, ada, { kind: "plain" })
      const own = (yield* read(target, `tags?ks=${id}`)).body
      assert.match(String(at(own, "image")), new RegExp(`/${id}\\.png$`))
      assert.match(String(at(own, "shareImageTemplate")), /\/\{shareId\}\.png$/)
      const unknown = (yield* read(target, "tags?ks=nothing")).body
      assert.match(String(at(unknown, "image")), /\/card\.png$/)
      assert.strictEqual(at(unknown, "image"), at(unknown, "defaultImage"))
      const secret = yield* operate(target, "GET", `share/tags?ks=${id}`)
      assert.deepStrictEqual(secret.body, own)
    })
  )

  it.effect("makes card tags of a fixed picture alone, and no template for pictures of links", () =>
    Effect.gen(function* () {
      const { target } = yield* appOf({
        share: { tags: { image: "https://cdn.example/card.png", title: 'A "game" <x>' } }
      })
      const { body } = yield* read(target, "tags")
      assert.strictEqual(at(body, "image"), "https://cdn.example/card.png")
      assert.isNull(at(body, "shareImageTemplate"))
      assert.include(String(at(body, "html")), 'content="A &quot;game&quot; &lt;x&gt;"')
    })
  )
})

/** The stats webhook: signature, approvals, failures and secret rotation. */
import { createHmac } from "node:crypto"
import { assert, layer } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { SqlClient } from "effect/sql"
import { at, request } from "#testing/players"
import { buildAnother, addressOfNode, nodeWith, SharedDatabase } from "../../support/http-stack.ts"
import { codeOf, newGame } from "../../support/players.ts"
import { developersServer, gameWith, json, type Reply } from "../../support/webhook.ts"

const Node = nodeWith().pipe(Layer.provideMerge(SharedDatabase.layer))

const secretPath = "/v1/admin/integrity/webhook-secret"

const reasonsOf = ({ body }: { readonly body: unknown }) =>
  Array.from(Object(at(body, "rejected")), (one) => [at(one, "stat"), at(one, "reason")])

const storedOf = ({ body }: { readonly body: unknown }) =>
  Object.keys(Object(at(body, "stats"))).toSorted()

layer(Node, { excludeTestServices: true })("the stats webhook", (it) => {
  it.effect("sends the webhook the accepted values with a signature", () =>
    Effect.gen(function* () {
      const { received, url } = yield* developersServer(json({ approve: true }))
      const { environmentId, player, server } = yield* newGame(gameWith({ url }))
      const answer = yield* player.ask("POST", "/v1/stats", {
        stats: { kills: -1, best: 7, unheard: 1 }
      })
      assert.deepStrictEqual(storedOf(answer), ["best"])
      assert.lengthOf(received, 1)
      const { body = "", contentType, signature = "" } = received[0] ?? {}
      assert.strictEqual(contentType, "application/json")
      const message: unknown = JSON.parse(body)
      assert.strictEqual(at(message, "type"), "stats.verify")
      assert.strictEqual(at(message, "environmentId"), environmentId)
      assert.strictEqual(at(message, "playerId"), player.id)
      assert.deepStrictEqual(at(message, "stats"), { best: 7 })
      assert.match(String(at(message, "submittedAt")), /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/)
      const secret = String((yield* server("GET", secretPath)).body.secret)
      assert.match(secret, /^whsec_[A-Za-z0-9_-]{43}$/)
      const [, seconds = "", mac] = /^t=(\d+),v1=([0-9a-f]{64})$/.exec(signature) ?? []
      assert.strictEqual(
        mac,
        createHmac("sha256", secret).update(`${seconds}.${body}`).digest("hex")
      )
    })
  )

  it.effect("rejects all or some values; a value missing from results is rejected", () =>
    Effect.gen(function* () {
      const stats = { kills: 1, best: 2 }
      const refused = "verification_rejected"
      for (const [reply, stored, reasons] of [
        [{ approve: true }, ["best", "kills"], []],
        [
          { approve: false },
          [],
          [
            ["kills", refused],
            ["best", refused]
          ]
        ],
        [{ results: { kills: true, best: true } }, ["best", "kills"], []],
        [{ results: { kills: true, best: false } }, ["kills"], [["best", refused]]],
        [{ results: { best: true, other: true } }, ["best"], [["kills", refused]]],
        [
          { results: {} },
          [],
          [
            ["kills", refused],
            ["best", refused]
          ]
        ],
        [
          { approve: false, results: { kills: true } },
          [],
          [
            ["kills", refused],
            ["best", refused]
          ]
        ],
        [{ approve: true, results: { kills: true }, more: 1 }, ["kills"], [["best", refused]]]
      ] as const) {
        const { url } = yield* developersServer(json(reply))
        const { player } = yield* newGame(gameWith({ url, onFailure: "reject" }))
        const answer = yield* player.ask("POST", "/v1/stats", { stats })
        assert.strictEqual(answer.status, 200)
        assert.deepStrictEqual(storedOf(answer), [...stored], JSON.stringify(reply))
        assert.deepStrictEqual(
          reasonsOf(answer),
          reasons.map(([stat, reason]) => [stat, reason])
        )
      }
    })
  )

  const noReply: Reply = () => undefined

  it.effect(
    "applies onFailure to invalid and late responses",
    () =>
      Effect.gen(function* () {
        const replies: ReadonlyArray<Reply> = [
          json("not json"),
          json({}),
          json({ approve: "yes" }),
          json({ results: { kills: 1 } }),
          json([]),
          json({ approve: true, padding: "x".repeat(70_000) }),
          (response) => response.writeHead(500).end('{"approve":true}'),
          (response) => response.writeHead(302, { location: "/elsewhere" }).end('{"approve":true}'),
          (response) => response.socket?.destroy(),
          noReply
        ]
        for (const reply of replies) {
          const { received, url } = yield* developersServer(reply)
          let reports = 0
          for (const onFailure of ["accept", "reject"] as const) {
            // Long enough that a busy process is not what the service is late for.
            const timeoutMs = reply === noReply ? 1000 : 5000
            const { player } = yield* newGame(gameWith({ url, onFailure, timeoutMs }))
            const report = player.ask("POST", "/v1/stats", { stats: { kills: 1 } })
            // A process without time to look for the answer says so.
            const answer = yield* Effect.repeat(
              Effect.tap(report, () => Effect.sync(() => (reports += 1))),
              { until: ({ status }) => status !== 503 }
            )
            assert.strictEqual(answer.status, 200)
            assert.deepStrictEqual(
              reasonsOf(answer),
              onFailure === "accept" ? [] : [["kills", "verification_unavailable"]]
            )
          }
          // The service does not retry.
          assert.lengthOf(received, reports)
        }
      }),
    { tags: "long" }
  )

  it.effect("calls no webhook without accepted values, statsVerification or a URL", () =>
    Effect.gen(function* () {
      const { received, url } = yield* developersServer(json({ approve: true }))
      const off = { ...gameWith({ url }), features: { stats: true } }
      const { player: quiet } = yield* newGame(off)
      const stored = yield* quiet.ask("POST", "/v1/stats", { stats: { kills: -1 } })
      assert.deepStrictEqual(storedOf(stored), ["kills"])
      const { player } = yield* newGame(gameWith({ url }))
      yield* player.ask("POST", "/v1/stats", { stats: { kills: -1, unheard: 1 } })
      assert.isEmpty(received)
    })
  )

  it.effect("calls loopback webhooks in development only, never in production", () =>
    Effect.gen(function* () {
      const { received, url } = yield* developersServer(json({ approve: true }))
      const game = gameWith({ url, onFailure: "reject" })
      const { environmentId, player } = yield* newGame({ audience: "mixed" }, "production")
      // A push refuses this document; an earlier release has stored it, and a new node reads it.
      const sql = yield* SqlClient.SqlClient
      yield* sql`
        update configs set document = ${JSON.stringify(game)}
        where environment_id = ${environmentId}`
      const node = yield* buildAnother(nodeWith())
      const here = player.askAt(yield* Effect.provideContext(addressOfNode, node))
      const answer = yield* here("POST", "/v1/stats", { stats: { kills: 1 } })
      assert.deepStrictEqual(reasonsOf(answer), [["kills", "verification_unavailable"]])
      const production = yield* buildAnother(nodeWith({ NODE_ENV: "production" }))
      const { player: other } = yield* newGame(game)
      const there = other.askAt(yield* Effect.provideContext(addressOfNode, production))
      const refused = yield* there("POST", "/v1/stats", { stats: { kills: 1 } })
      assert.deepStrictEqual(reasonsOf(refused), [["kills", "verification_unavailable"]])
      assert.isEmpty(received)
    })
  )
})

layer(Node, { excludeTestServices: true })("the webhook's secret", (it) => {
  it.effect("warns at the push of a webhook at an address that the service never calls", () =>
    Effect.gen(function* () {
      const game = yield* newGame(gameWith({ url: "https://play.example.com/verify" }))
      for (const [url, isWarned] of [
        ["https://10.0.0.7/verify", true],
        ["https://[fd00::1]/verify", true],
        ["https://169.254.169.254/latest", true],
        ["https://play.example.com/verify", false]
      ] as const) {
        const pushed = yield* request(`${game.url}/v1/config`, {
          method: "PUT",
          headers: { "x-svc-key": game.secretKey },
          body: gameWith({ url })
        })
        assert.strictEqual(pushed.status, 200, JSON.stringify(pushed.body))
        const paths = Array.from(Object(at(pushed.body, "warnings")), (each) => at(each, "path"))
        assert.strictEqual(paths.includes("integrity.stats.webhook.url"), isWarned, url)
      }
    })
  )

  it.effect("issues a secret per environment, stable across reads, and stores it encrypted", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const { environmentId, server, publishableKey, url } = yield* newGame({})
      const answers = yield* Effect.forEach(
        Array.from({ length: 8 }),
        () => server("GET", secretPath),
        { concurrency: "unbounded" }
      )
      const secrets = new Set(answers.map(({ body }) => body.secret))
      assert.strictEqual(secrets.size, 1)
      const [secret] = secrets
      const rows = yield* sql`
        select sealed from webhook_secrets where environment_id = ${environmentId}`
      assert.notInclude(JSON.stringify(rows), String(secret).slice(6))
      const { server: another } = yield* newGame({})
      assert.notStrictEqual((yield* another("GET", secretPath)).body.secret, secret)
      const page = yield* request(`${url}${secretPath}`, {
        headers: { "x-svc-key": publishableKey }
      })
      assert.strictEqual(codeOf(page), "invalid_key")
    })
  )

  it.effect("signs with the old secret on no node after a rotation", () =>
    Effect.gen(function* () {
      const { received, url: hook } = yield* developersServer(json({ approve: true }))
      const { player, server } = yield* newGame(gameWith({ url: hook }))
      const other = yield* buildAnother(nodeWith())
      const there = player.askAt(yield* Effect.provideContext(addressOfNode, other))
      const report = there("POST", "/v1/stats", { stats: { kills: 1 } })
      const before = String((yield* server("GET", secretPath)).body.secret)
      yield* report
      const rotated = String((yield* server("POST", secretPath)).body.secret)
      assert.notStrictEqual(rotated, before)
      assert.strictEqual((yield* server("GET", secretPath)).body.secret, rotated)
      const signedBy = (secret: string) => {
        const { body = "", signature = "" } = received.at(-1) ?? {}
        const seconds = /^t=(\d+)/.exec(signature)?.[1] ?? ""
        return signature.endsWith(
          createHmac("sha256", secret).update(`${seconds}.${body}`).digest("hex")
        )
      }
      yield* report
      // The other node receives the invalidation shortly.
      while (!signedBy(rotated)) {
        assert.isTrue(signedBy(before))
        yield* report
      }
    })
  )
})

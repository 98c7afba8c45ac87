/**
 * Delivery of mails through failures, stops and restarts, at least once; their content; and the mail page
 * in development.
 */
import { get } from "node:http"
import { assert, describe, it, layer } from "@effect/vitest"
import { Clock, Context, Effect, Exit, flow, Layer, Scope } from "effect"
import { HttpServer } from "effect/http"
import { SqlClient } from "effect/sql"
import { TestClock } from "effect/testing"
import { poolLayer } from "#sql/database"
import { renderMail } from "#server/platform/mail/templates"
import { Environments } from "#server/features/projects/environments"
import { mailLimits } from "#server/platform/mail/transport"
import { at, request } from "#testing/players"
import {
  callsOf,
  codeOf,
  makeEmailProject,
  NodeLive,
  nodeWithInbox,
  password,
  emailConfig
} from "../support/email/email-harness.ts"
import { Inbox } from "../support/email/inbox.ts"
import { addressOfNode, configure, nodeWith, SharedDatabase } from "../support/http-stack.ts"
import { whileTimePasses } from "../support/passing-time.ts"

/** A separate node that the test stops. */
const startNode = Effect.fnUntraced(function* (env: Readonly<Record<string, string>> = {}) {
  const scope = yield* Scope.make()
  const context = yield* Layer.buildWithScope(Layer.fresh(nodeWithInbox(env)), scope)
  const { address } = Context.get(context, HttpServer.HttpServer)
  return {
    url: "port" in address ? `http://127.0.0.1:${address.port}` : "",
    context,
    // Stopping has timeouts.
    stop: whileTimePasses(Scope.close(scope, Exit.void), "100 millis")
  }
})

/** Nodes that share a database and a mail server; each ends with the test. */
const startNodes = Effect.fnUntraced(function* (count: number) {
  const nodes = yield* Effect.all(Array.from({ length: count }, () => startNode()))
  yield* Effect.addFinalizer(() => Effect.forEach(nodes, ({ stop }) => stop))
  const [first] = nodes
  if (first === undefined) return yield* Effect.die("no node")
  const project = yield* Effect.provide(makeEmailProject, first.context)
  return { nodes, first, project }
})

const waitingMails = Effect.flatMap(
  SqlClient.SqlClient,
  (sql) => sql<{ readonly attempts: number }>`
    select attempts from mails where due_at is not null order by id`
)

/** Repeats an effect until its result matches. */
const eventually = <A, E, R>(effect: Effect.Effect<A, E, R>, matches: (value: A) => boolean) =>
  Effect.repeat(effect, { until: matches })

/** Gives a test its own mail server and database. */
const withOwnServers = flow(
  Effect.scoped,
  Effect.provide(Layer.mergeAll(Inbox.layer, SharedDatabase.layer))
)

describe("an accepted mail", () => {
  it.effect("sends an accepted mail by another node when the first stops before sending it", () =>
    Effect.gen(function* () {
      const inbox = yield* Inbox
      const { first, project } = yield* startNodes(1)
      yield* inbox.policy("hold")
      yield* project.signUp("ada@example.com")
      yield* inbox.attempted("ada@example.com")
      yield* first.stop
      yield* inbox.policy("accept")
      const next = yield* startNode()
      const mail = yield* inbox.next("ada@example.com")
      const { post } = callsOf(next.url, project)
      const token = mail.fragment.get("svc_verify")
      assert.strictEqual((yield* post("email/verify", { token })).status, 200)
      assert.isEmpty(
        yield* Effect.provide(
          eventually(waitingMails, (rows) => rows.length === 0),
          next.context
        )
      )
      yield* next.stop
      assert.strictEqual(inbox.countAttempts("ada@example.com"), 2)
    }).pipe(withOwnServers)
  )

  it.effect(
    "sends an accepted mail by another node when the claim of a killed node expires",
    () =>
      Effect.gen(function* () {
        const inbox = yield* Inbox
        const { first, project } = yield* startNodes(1)
        yield* inbox.policy("hold")
        yield* project.signUp("bea@example.com")
        yield* inbox.attempted("bea@example.com")
        yield* first.stop
        yield* inbox.policy("accept")
        // The state that a killed process leaves: claimed until `claimSeconds` have passed.
        const now = (yield* Clock.currentTimeMillis) / 1000
        const claimEnds = now + mailLimits.claimSeconds
        const claimed = Effect.flatMap(
          SqlClient.SqlClient,
          (sql) => sql`update mails set due_at = to_timestamp(${claimEnds})`
        )
        const url = yield* SharedDatabase
        yield* Effect.provide(claimed, poolLayer({ url, connections: 1 }))
        const next = yield* startNode()
        yield* whileTimePasses(inbox.next("bea@example.com"), "1 second")
        assert.isAtLeast((yield* Clock.currentTimeMillis) / 1000, claimEnds)
        assert.strictEqual(inbox.countAttempts("bea@example.com"), 2)
        yield* next.stop
      }).pipe(withOwnServers),
    { tags: "long" }
  )

  it.effect("sends a mail once and without delay when two nodes run", () =>
    Effect.gen(function* () {
      const inbox = yield* Inbox
      const { nodes, project } = yield* startNodes(2)
      const addresses = Array.from({ length: 12 }, (_, i) => `two${i}@example.com`)
      yield* Effect.forEach(
        addresses,
        (email, i) => callsOf(nodes[i % 2]?.url ?? "", project).signUp(email),
        { concurrency: 4 }
      )
      // The clock has not advanced, so no node has polled the outbox again.
      for (const address of addresses) yield* inbox.next(address)
      yield* TestClock.adjust("1 minute")
      yield* TestClock.adjust("5 minutes")
      for (const address of addresses) assert.strictEqual(inbox.countAttempts(address), 1)
    }).pipe(withOwnServers)
  )

  it.effect(
    "retries a mail while the mail server is down, and sends it when it is up",
    () =>
      Effect.gen(function* () {
        const inbox = yield* Inbox
        const { first, project } = yield* startNodes(1)
        yield* inbox.close
        yield* project.signUp("cara@example.com")
        const waiting = Effect.provide(waitingMails, first.context)
        yield* whileTimePasses(
          eventually(waiting, ([row]) => (row?.attempts ?? 0) > 2),
          "1 second"
        )
        yield* inbox.reopen
        yield* whileTimePasses(inbox.next("cara@example.com"), "1 second")
        yield* eventually(waiting, (rows) => rows.length === 0)
      }).pipe(withOwnServers),
    { tags: "long" }
  )

  it.effect("discards a mail after the mail server rejects it permanently", () =>
    Effect.gen(function* () {
      const inbox = yield* Inbox
      const { first, project } = yield* startNodes(1)
      yield* inbox.policy("refuse")
      yield* project.signUp("dora@example.com")
      yield* inbox.attempted("dora@example.com")
      yield* eventually(Effect.provide(waitingMails, first.context), (rows) => rows.length === 0)
      yield* inbox.policy("accept")
      assert.strictEqual(inbox.countAttempts("dora@example.com"), 1)
    }).pipe(withOwnServers)
  )

  it.effect("discards a mail when its link has expired", () =>
    Effect.gen(function* () {
      const inbox = yield* Inbox
      const { first, project } = yield* startNodes(1)
      yield* project.signUp("eve@example.com")
      yield* inbox.next("eve@example.com")
      yield* inbox.policy("postpone")
      yield* project.post("password/forgot", { email: "eve@example.com" })
      const waiting = Effect.provide(waitingMails, first.context)
      yield* eventually(
        Effect.andThen(TestClock.adjust("1 minute"), waiting),
        (rows) => rows.length === 0
      )
      assert.isBelow(inbox.countAttempts("eve@example.com"), mailLimits.attemptsMax)
      yield* inbox.policy("accept")
    }).pipe(withOwnServers)
  )

  it.effect("deletes an accepted mail with its player", () =>
    Effect.gen(function* () {
      const inbox = yield* Inbox
      const { first, project } = yield* startNodes(1)
      yield* inbox.policy("postpone")
      const { id } = yield* project.signUp("flo@example.com")
      yield* inbox.attempted("flo@example.com")
      const sql = Context.get(first.context, SqlClient.SqlClient)
      yield* sql`delete from players where id = ${id}`
      assert.isEmpty(yield* sql`select id from mails where player_id = ${id}`)
      yield* inbox.policy("accept")
    }).pipe(withOwnServers)
  )
})

layer(NodeLive({ SVC_MAIL_FROM: "game@mail.example.com" }))("a rendered mail", (it) => {
  it.effect("writes the project's name into a mail's text and HTML, and never into a header", () =>
    Effect.gen(function* () {
      const url = yield* addressOfNode
      const inbox = yield* Inbox
      const environments = yield* Environments
      const name = `Fönix "Bcc: eve@example.com" <b>&Co</b>`
      const { environments: ids, keys } = yield* environments.createProject(name)
      const tenant = {
        environmentId: ids.development,
        name: "development" as const,
        ...keys.development
      }
      yield* configure(tenant, emailConfig)
      yield* callsOf(url, tenant).signUp("ada@example.com")
      const mail = yield* inbox.next("ada@example.com")
      assert.strictEqual(mail.from, "game@mail.example.com")
      assert.strictEqual(mail.headers.get("to"), "ada@example.com")
      assert.isFalse(mail.headers.has("bcc"))
      assert.include(mail.headers.get("from"), "<game@mail.example.com>")
      assert.strictEqual(mail.headers.get("auto-submitted"), "auto-generated")
      assert.match(mail.headers.get("message-id") ?? "", /^<mail_[0-9A-Z]{26}@mail\.example\.com>$/)
      assert.match(mail.headers.get("subject") ?? "", /^(?:=\?UTF-8\?[QB]\?\S+\?=\s*)+$/)
      assert.include(mail.text, name)
      assert.include(mail.text, "24 hours")
      assert.include(mail.html, "&lt;b&gt;&amp;Co&lt;/b&gt;")
      assert.notInclude(mail.html, "<b>")
      assert.include(mail.html, `href="${mail.link.replaceAll("&", "&amp;")}"`)
    })
  )

  it("writes no line break into a subject, and escapes the link in HTML", () => {
    const link = `https://game.example.com/?a="><script>x</script>#svc_reset=t`
    const mail = renderMail("reset", "A\r\nBcc: eve@example.com\u2028", link)
    assert.strictEqual(mail.subject, "Choose a new password for A Bcc: eve@example.com")
    assert.notInclude(mail.html, "<script>")
    assert.include(mail.text, link)
    assert.include(mail.text, "30 minutes")
  })
})

const LocalNode = nodeWith().pipe(Layer.provideMerge(SharedDatabase.layer))

layer(LocalNode)("without a mail server in development", (it) => {
  const page = Effect.flatMap(addressOfNode, (url) => request(`${url}/dev/mail`))

  it.effect("shows stored mails in development, newest first, escaped and with working links", () =>
    Effect.gen(function* () {
      const url = yield* addressOfNode
      const environments = yield* Environments
      const created = yield* environments.createProject("<script>alert(1)</script>")
      const { environments: ids, keys } = created
      const tenant = {
        environmentId: ids.development,
        name: "development" as const,
        ...keys.development
      }
      yield* configure(tenant, emailConfig)
      const { post, signUp } = callsOf(url, tenant)
      const empty = yield* page
      assert.strictEqual(empty.status, 200)
      assert.include(String(empty.body), "none yet")
      yield* signUp("ada@example.com")
      yield* post("password/forgot", { email: "nobody@example.com" })
      yield* TestClock.adjust("1 second")
      yield* post("password/forgot", { email: "ada@example.com" })
      const answer = yield* eventually(page, ({ body }) =>
        /svc_reset[^]*svc_verify/.test(String(body))
      )
      const html = String(answer.body)
      assert.notInclude(html, "<script")
      assert.notInclude(html, "nobody@example.com")
      assert.include(answer.headers.get("content-security-policy"), "default-src 'none'")
      const link = /<a href="([^"]*svc_verify[^"]*)"/.exec(html)?.[1]?.replaceAll("&amp;", "&")
      const token = new URLSearchParams(link?.split("#")[1]).get("svc_verify")
      assert.strictEqual((yield* post("email/verify", { token })).status, 200)
    })
  )

  it.effect("answers 404 on the mail page to requests of another origin", () =>
    Effect.gen(function* () {
      const url = yield* addressOfNode
      const answer = yield* request(`${url}/dev/mail`, {
        headers: { origin: "https://evil.example" }
      })
      assert.deepStrictEqual([answer.status, codeOf(answer)], [404, "not_found"])
    })
  )

  it.effect("answers 404 on the mail page to a foreign host name (DNS rebinding)", () =>
    Effect.gen(function* () {
      const url = yield* addressOfNode
      const status = (host: string) =>
        Effect.callback<number | undefined>((resume) => {
          get(`${url}/dev/mail`, { headers: { host } }, (response) => {
            response.resume()
            resume(Effect.succeed(response.statusCode))
          })
        })
      assert.strictEqual(yield* status("evil.example:8080"), 404)
      assert.strictEqual(yield* status("localhost:8080"), 200)
    })
  )

  it.effect("stores the newest mails in development, encrypted", () =>
    Effect.gen(function* () {
      const { signUp } = yield* makeEmailProject
      const sql = yield* SqlClient.SqlClient
      yield* signUp("stored@example.com")
      const stored = sql<{ readonly sealed: string }>`select sealed from mails where due_at is null`
      const rows = yield* eventually(stored, (found) => found.length > 0)
      for (const { sealed } of rows) assert.match(sealed, /^[\w-]{8}(?:\.[\w-]+){2}$/)
      yield* sql`
        insert into mails (id, environment_id, purpose, sealed, attempts, created_at, expires_at)
        select 'mail_' || lpad(n::text, 26, '0'), environment_id, purpose, sealed, 1, created_at,
          expires_at
        from (select * from mails limit 1) m, generate_series(1, ${mailLimits.storedMax}) n`
      yield* signUp("newest@example.com")
      yield* eventually(sql`select id from mails`, (found) => found.length === mailLimits.storedMax)
      const { body } = yield* page
      assert.include(String(body), "newest@example.com")
    })
  )
})

const NodeWithoutMail = nodeWith({ NODE_ENV: "production" }).pipe(
  Layer.provideMerge(SharedDatabase.layer)
)

layer(NodeWithoutMail)("without a mail server in production", (it) => {
  it.effect("answers mail_unavailable without a mail server; sign-ups and links work", () =>
    Effect.gen(function* () {
      const { guest, logIn, post, signUp, url } = yield* makeEmailProject
      const sql = yield* SqlClient.SqlClient
      const player = yield* signUp("ada@example.com")
      const linked = yield* post("link/email", { email: "bea@example.com", password }, yield* guest)
      assert.strictEqual(linked.status, 200)
      for (const answer of [
        yield* post("email/resend", {}, player),
        yield* post("password/forgot", { email: "ada@example.com" }),
        yield* post("password/forgot", { email: "nobody@example.com" })
      ]) {
        assert.deepStrictEqual([answer.status, codeOf(answer)], [503, "mail_unavailable"])
      }
      assert.isEmpty(yield* sql`select id from mails`)
      assert.strictEqual((yield* logIn("ada@example.com")).status, 200)
      const page = yield* request(`${url}/dev/mail`)
      assert.deepStrictEqual([page.status, codeOf(page)], [404, "not_found"])
    })
  )
})

describe("the outbox", () => {
  it.effect("answers mail_unavailable when the outbox is full, while sign-ups continue", () =>
    Effect.gen(function* () {
      const inbox = yield* Inbox
      const { first, project } = yield* startNodes(1)
      const sql = Context.get(first.context, SqlClient.SqlClient)
      const player = yield* project.signUp("ada@example.com")
      yield* inbox.next("ada@example.com")
      yield* sql`
        insert into mails (id, environment_id, purpose, sealed, attempts, created_at, expires_at,
          due_at)
        select 'mail_' || lpad(n::text, 26, '0'), ${project.environmentId}, 'reset', 'x', 0, now(),
          'infinity', 'infinity' from generate_series(1, ${mailLimits.waitingMax}) n`
      const answer = yield* project.post("email/resend", {}, player)
      assert.deepStrictEqual([answer.status, codeOf(answer)], [503, "mail_unavailable"])
      const signedUp = yield* project.post("email/signup", { email: "bea@example.com", password })
      assert.isFalse(at(signedUp.body, "player", "emailVerified"))
    }).pipe(withOwnServers)
  )
})

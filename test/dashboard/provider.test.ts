/** Sign-in to the dashboard with a provider: the code of the return becomes a session in the cookie. */
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { dashboardHeader } from "#rpc/dashboard"
import { at, request } from "#testing/players"
import { codeOf } from "../support/developer-requests.ts"
import { addressOfNode } from "../support/http-stack.ts"
import {
  completeFlow,
  dashboardUrl,
  DeveloperNodeLive,
  DeveloperProviders
} from "../support/oauth/developer-harness.ts"
import { challengeOf, verifier } from "../support/oauth/oauth-harness.ts"

const headers = { [dashboardHeader]: "1" }

const exchanged = Effect.fnUntraced(function* (body: object) {
  return yield* request(`${yield* addressOfNode}/dashboard/session/exchange`, { headers, body })
})

layer(DeveloperNodeLive())("the sign-in to the dashboard with a provider", (it) => {
  it.effect(
    "keeps the token of a provider sign-in in the cookie, for the page that started the sign-in alone",
    () =>
      Effect.gen(function* () {
        const { google } = yield* DeveloperProviders
        const email = "ada@example.com"
        google.accounts.set("ada", { name: "Ada", email, emailVerified: true })
        const stolen = yield* completeFlow("google", "ada")
        const other = verifier.replaceAll(/^./g, (first) => (first === "a" ? "b" : "a"))
        const refused = yield* exchanged({ code: stolen.code, verifier: other })
        assert.strictEqual(codeOf(refused), "invalid_code")
        assert.isNull(refused.headers.get("set-cookie"))
        const { code } = yield* completeFlow("google", "ada")
        const answer = yield* exchanged({ code, verifier })
        assert.strictEqual(at(answer.body, "developer", "email"), email)
        assert.notInclude(JSON.stringify(answer.body), "kds_")
        assert.match(answer.headers.get("set-cookie") ?? "", /^__Host-svc=kds_[\w-]{43};/)
      })
  )

  it.effect(
    "links another provider to the developer of the cookie, in requests of the dashboard alone",
    () =>
      Effect.gen(function* () {
        const { google } = yield* DeveloperProviders
        const email = "bea@example.com"
        google.accounts.set("bea", { name: "Bea", email, emailVerified: true })
        const { code } = yield* completeFlow("google", "bea")
        const signedIn = yield* exchanged({ code, verifier })
        const cookie = signedIn.headers.get("set-cookie")?.split(";")[0] ?? ""
        const url = `${yield* addressOfNode}/v1/developers/oauth/github/start`
        const body = { redirectUrl: dashboardUrl, challenge: challengeOf(verifier), intent: "link" }
        const startWith = (more: Readonly<Record<string, string>>) =>
          Effect.map(request(url, { headers: { cookie, ...more }, body }), ({ status }) => status)
        assert.strictEqual(yield* startWith(headers), 200)
        assert.strictEqual(yield* startWith({}), 401)
        assert.strictEqual(yield* startWith({ ...headers, origin: "https://evil.example" }), 401)
        assert.strictEqual(yield* startWith({ ...headers, authorization: "Bearer kds_other" }), 401)
      })
  )
})

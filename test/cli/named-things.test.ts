/** What `svc` says of a domain or a dead letter that does not exist: the name, and where to look. */
import { assert, layer } from "@effect/vitest"
import { NodeServices } from "@effect/platform-node"
import { Effect } from "effect"
import { fakeService } from "../support/cli/fake-service.ts"
import { makeFolder } from "../support/cli/svc.ts"

const error = { code: "not_found", message: "Not found." }
const missing = { status: 404, body: { error } }

const record = { name: "_svc.play.example.com", type: "TXT", value: "svc-domain=1" }
const added = {
  domain: "play.example.com",
  status: "pending",
  url: "https://play.example.com/",
  record,
  createdAt: "2026-07-30T12:00:00.000Z",
  verifiedAt: null
}

layer(NodeServices.layer, { excludeTestServices: true })("svc", (it) => {
  it.effect("names the domain or the dead letter that the environment does not have", () =>
    Effect.gen(function* () {
      const { url } = yield* fakeService({
        "DELETE /v1/hosting/domains/play.example.com": missing,
        "POST /v1/hosting/domains/play.example.com/verify": missing,
        "POST /v1/admin/functions/dead-letters/9/retry": missing
      })
      const folder = yield* makeFolder({ SVC_URL: url, SVC_SECRET_KEY: "sk_1" })
      for (const command of ["domains remove", "domains verify"]) {
        const run = yield* folder.svc(`${command} play.example.com`)
        assert.strictEqual(run.code, 2)
        assert.include(run.stderr, "play.example.com is no domain of development")
      }
      const run = yield* folder.svc("functions queues retry 9")
      assert.strictEqual(run.code, 2)
      assert.include(run.stderr, "There is no dead letter 9 in development")
    })
  )

  it.effect("names the environment in the next step of a new domain", () =>
    Effect.gen(function* () {
      const { url } = yield* fakeService({ "POST /v1/hosting/domains": { body: added } })
      const folder = yield* makeFolder({ SVC_URL: url, SVC_SECRET_KEY: "sk_1" })
      const { stdout } = yield* folder.svc("domains add play.example.com")
      assert.include(stdout, "svc domains verify play.example.com --env development")
    })
  )
})

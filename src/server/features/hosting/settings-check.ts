/**
 * Validates `svc.hosting.json` before the completion of a deployment, so that an invalid one never goes
 * live.
 */
import { readFile } from "node:fs/promises"
import { Effect, Schema } from "effect"
import { reservedPaths } from "#rpc/hosting/paths"
import type { DeploymentId, EnvironmentId } from "#rpc/ids"
import { DeploymentRepository } from "#sql/hosting/deployments"
import { invalidRequest } from "#server/platform/invalid-request"
import { Blobs } from "./blobs.ts"
import { SiteSettings } from "./site.ts"

const decode = Schema.decodeEffect(Schema.fromJsonString(SiteSettings), {
  errors: "all",
  onExcessProperty: "error"
})

/**
 * Fails with `invalid_request` if the settings of a deployment are invalid. The store must have its
 * files.
 */
export const makeSettingsCheck = Effect.gen(function* () {
  const blobs = yield* Blobs
  const deployments = yield* DeploymentRepository
  return Effect.fnUntraced(function* (environmentId: EnvironmentId, id: DeploymentId) {
    const files = (yield* deployments.files({ environmentId, id })) ?? []
    const settings = files.find(({ path }) => path === reservedPaths.settings)
    if (settings === undefined) return
    const path = yield* blobs.open(environmentId, settings.sha256, "")
    const text = yield* Effect.orDie(Effect.tryPromise(() => readFile(path, "utf8")))
    yield* Effect.catchTag(decode(text), "SchemaError", ({ issue }) =>
      Effect.fail(invalidRequest(issue, [reservedPaths.settings]))
    )
  })
})

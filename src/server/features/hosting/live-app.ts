/** Live deployment of an environment for other features: its address and its files. */
import { readFile } from "node:fs/promises"
import { Effect, Option } from "effect"
import type { EnvironmentName } from "#rpc/auth"
import type { EnvironmentId } from "#rpc/ids"
import { Settings } from "#server/platform/settings/settings"
import { makeAddresses } from "./addresses.ts"
import { HostedApps } from "./apps.ts"
import { Blobs } from "./blobs.ts"
import type { SiteFile } from "./site.ts"

/** App at the address of an environment. */
export interface LiveApp {
  readonly environmentId: EnvironmentId
  /** URL of the app, with a slash at the end. */
  readonly url: string
  readonly files: ReadonlyMap<string, SiteFile>
}

/** Finds the live app of a project's environment; undefined while the environment serves none. */
export const makeLiveApp = Effect.gen(function* () {
  const apps = yield* HostedApps
  const { baseUrl, hosting } = yield* Settings
  const addresses = makeAddresses({ baseUrl, domain: hosting.domain })
  return Effect.fnUntraced(function* (slug: string, name: EnvironmentName) {
    const url = addresses.live(slug, name)
    if (url === undefined) return undefined
    const host = new URL(url).hostname
    const app = apps.known(host) ?? (yield* apps.load(host))
    if (app === "unknown" || !app.enabled || app.site === undefined) return undefined
    const live: LiveApp = { environmentId: app.environmentId, url, files: app.site.files }
    return live
  })
})

/** Reads a file of a live app; none if it is larger than the bound, or lost. */
export const makeReadFile = Effect.map(
  Blobs,
  (blobs) => (live: LiveApp, file: SiteFile, maxBytes: number) =>
    file.size > maxBytes
      ? Effect.succeedNone
      : blobs.open(live.environmentId, file.sha256, "").pipe(
          Effect.flatMap((path) => Effect.tryPromise(() => readFile(path))),
          Effect.tapError((error) => Effect.logWarning("Failed to read a file of an app", error)),
          Effect.option,
          Effect.map(Option.map((body): Uint8Array => body))
        )
)

/** Checks return addresses of sign-ins and email links against `auth.redirectUrls` of the config. */
import { Effect } from "effect"
import type { EnvironmentCaller } from "#rpc/auth"
import { redirectUrlAllowed } from "#rpc/config-document/auth"
import { invalidField } from "#server/platform/invalid-request"
import { Settings } from "#server/platform/settings/settings"
import { Configs } from "../config/service.ts"
import { HostedApps } from "../hosting/apps.ts"

/**
 * Fails with `invalid_request` when the environment does not allow a redirect URL. `path` is the JSON
 * path of the URL in the request. Always allows pages of the service's own origin and of the hosted
 * app.
 */
export const makeRedirectUrlCheck = Effect.gen(function* () {
  const apps = yield* HostedApps
  const configs = yield* Configs
  const ownPages = `${new URL((yield* Settings).baseUrl).origin}/*`
  return Effect.fnUntraced(function* (
    { environmentId, name }: EnvironmentCaller,
    redirectUrl: string,
    path: string
  ) {
    const { auth } = (yield* configs.current(environmentId)).config
    const allowed = { auth: { ...auth, redirectUrls: [...auth.redirectUrls, ownPages] } }
    const development = name === "development"
    if (redirectUrlAllowed(allowed, redirectUrl, { development })) return
    const origin = URL.parse(redirectUrl)?.origin ?? ""
    if (yield* apps.isOwnOrigin(environmentId, origin)) {
      const ownApp = { auth: { ...auth, redirectUrls: [`${origin}/*`] } }
      if (redirectUrlAllowed(ownApp, redirectUrl, { development })) return
    }
    return yield* invalidField(
      path,
      "The URL is not allowed. Add it to auth.redirectUrls in the config."
    )
  })
})

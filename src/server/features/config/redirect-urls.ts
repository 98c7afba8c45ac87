/** Where sign-in and the links of mails may lead back to (spec section 2.2, `auth.redirectUrls`). */
import { Effect } from "effect"
import type { EnvironmentCaller } from "#rpc/auth"
import { redirectUrlAllowed } from "#rpc/config-document/auth"
import { InvalidRequest } from "#rpc/errors/codes"
import { Settings } from "#server/platform/settings/settings"
import { Configs } from "./service.ts"

/** Refuses an address that an environment does not allow; `path` is where it stands in the request. */
export const makeRedirectUrlCheck = Effect.gen(function* () {
  const configs = yield* Configs
  const ownPages = `${new URL((yield* Settings).baseUrl).origin}/*`
  return Effect.fnUntraced(function* (
    { environmentId, name }: EnvironmentCaller,
    redirectUrl: string,
    path: string
  ) {
    const { auth } = (yield* configs.current(environmentId)).config
    const addresses = { auth: { ...auth, redirectUrls: [...auth.redirectUrls, ownPages] } }
    const development = name === "development"
    if (redirectUrlAllowed(addresses, redirectUrl, { development })) return
    return yield* new InvalidRequest({
      details: {
        issues: [{ path, message: "This address is not in auth.redirectUrls of the config." }]
      }
    })
  })
})

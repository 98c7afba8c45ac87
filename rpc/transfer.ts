/**
 * Session transfer: the same player signs in on another device or browser. The first one shows a code.
 * The second redeems it, once, within ten minutes, while the first session is valid. Both stay signed
 * in.
 */
import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiMiddleware, HttpApiSchema, OpenApi } from "effect/http-api"
import { CurrentEnvironment, PlayerRate, PlayerToken, PublishableKey, Requests } from "./auth.ts"
import {
  InvalidCode,
  NotFound,
  PlayerBanned,
  SessionRevoked,
  ShareInAppBrowserDisabled,
  wire
} from "./errors/codes.ts"
import { feature, group } from "./feature.ts"
import { Session } from "./sessions.ts"
import { repeatable, repeatErrors } from "./spent-secrets.ts"
import { TypedCode } from "./typed-codes.ts"

/**
 * Middleware that answers 404 `share_inAppBrowser_disabled` while `share.inAppBrowser` is off,
 * before anything is read.
 */
export class InAppBrowserGate extends HttpApiMiddleware.Service<
  InAppBrowserGate,
  { requires: CurrentEnvironment }
>()("rpc/transfer/InAppBrowserGate", { error: wire(ShareInAppBrowserDisabled) }) {}

/** Transfer code; `expiresIn` is in seconds. */
const TransferCode = Schema.Struct({ code: Schema.String, expiresIn: Schema.Int }).annotate({
  identifier: "TransferCode",
  description: "A code that signs the player in on another device. `expiresIn` is in seconds."
})

/** `/v1/auth/transfer`. */
export class TransferApi extends group(
  "transfer",
  "players",
  "Session transfer",
  "Short codes that sign the same player in on another device or browser."
)
  .add(
    HttpApiEndpoint.post("issue", "/transfer", {
      success: TransferCode.pipe(HttpApiSchema.status(201)),
      error: [wire(NotFound), wire(SessionRevoked)]
    })
      .annotate(PlayerRate, { limit: 10, seconds: 600, name: "transfer" })
      .annotate(OpenApi.Summary, "Issue a code for another browser; earlier codes become invalid")
      .middleware(InAppBrowserGate)
      .middleware(PlayerToken),
    HttpApiEndpoint.post("redeem", "/transfer/redeem", {
      headers: repeatable,
      payload: Schema.Struct({ code: TypedCode }),
      success: Session,
      error: [wire(InvalidCode), wire(PlayerBanned), ...repeatErrors]
    })
      .annotate(OpenApi.Summary, "Sign in as the player who issued a code")
      .middleware(InAppBrowserGate)
  )
  .prefix("/v1/auth")
  .middleware(Requests)
  .middleware(PublishableKey) {}

export const transferFeature = feature({
  word: "transfer",
  groups: [TransferApi]
})

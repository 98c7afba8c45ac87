/**
 * Going on as the same player in another browser (spec sections 3 and 4.1, decisions 3.2.15): the one
 * browser shows a code, the other redeems it, once, within ten minutes and while the first is signed
 * in. Both stay so.
 */
import { Schema } from "effect"
import {
  HttpApiEndpoint,
  HttpApiGroup,
  HttpApiMiddleware,
  HttpApiSchema,
  OpenApi
} from "effect/http-api"
import { CurrentEnvironment, PlayerToken, PublishableKey, Requests } from "./auth.ts"
import {
  InvalidCode,
  NotFound,
  PlayerBanned,
  SessionRevoked,
  ShareInAppBrowserDisabled,
  wire
} from "./errors/codes.ts"
import { transfer as limits } from "./limits.ts"
import { Session } from "./sessions.ts"

/** 404 `share_inAppBrowser_disabled` while `share.inAppBrowser` is off, before anything is read. */
export class InAppBrowserGate extends HttpApiMiddleware.Service<
  InAppBrowserGate,
  { requires: CurrentEnvironment }
>()("rpc/transfer/InAppBrowserGate", { error: wire(ShareInAppBrowserDisabled) }) {}

/** `expiresIn` is seconds. */
const TransferCode = Schema.Struct({ code: Schema.String, expiresIn: Schema.Int })

/** `/v1/auth/transfer`. */
export class TransferApi extends HttpApiGroup.make("transfer")
  .add(
    HttpApiEndpoint.post("issue", "/transfer", {
      success: TransferCode.pipe(HttpApiSchema.status(201)),
      error: [wire(NotFound), wire(SessionRevoked)]
    })
      .annotate(OpenApi.Summary, "A code for another browser; earlier ones no longer work")
      .middleware(InAppBrowserGate)
      .middleware(PlayerToken),
    HttpApiEndpoint.post("redeem", "/transfer/redeem", {
      payload: Schema.Struct({
        /** Case does not matter, nor do spaces and dashes. */
        code: Schema.String.check(Schema.isBetweenLength(1, limits.codeMaxCharacters))
      }),
      success: Session,
      error: [wire(InvalidCode), wire(PlayerBanned)]
    })
      .annotate(OpenApi.Summary, "Sign in as the player of a code")
      .middleware(InAppBrowserGate)
  )
  .prefix("/v1/auth")
  .middleware(Requests)
  .middleware(PublishableKey) {}

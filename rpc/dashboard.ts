/**
 * The dashboard's session, beside the API. Its token is in a cookie that no script can read. It counts
 * only in requests of the dashboard's own pages, which carry {@link dashboardHeader}.
 */
import { Schema } from "effect"
import { HttpApi, HttpApiEndpoint, HttpApiGroup } from "effect/http-api"
import { Requests } from "./auth.ts"
import { Developer, Login, Signup } from "./developers.ts"
import {
  EmailTaken,
  InvalidCredentials,
  InvalidInviteCode,
  InviteCodeUsed,
  InviteLimitReached,
  NotFound,
  OriginNotAllowed,
  SignupsClosed,
  wire
} from "./errors/codes.ts"
import { DeveloperExchange, exchangeErrors } from "./oauth/developers.ts"
import { repeatable, repeatErrors } from "./spent-secrets.ts"

/** Requests of the dashboard carry this header. A page of another origin cannot send it. */
export const dashboardHeader = "x-svc-dashboard"

const signedIn = Schema.Struct({ developer: Developer })

const refusals = [wire(NotFound), wire(OriginNotAllowed)] as const

class DashboardSession extends HttpApiGroup.make("session")
  .add(
    HttpApiEndpoint.post("login", "/session", {
      payload: Login,
      success: signedIn,
      error: [...refusals, wire(InvalidCredentials)]
    }),
    HttpApiEndpoint.post("signup", "/session/signup", {
      headers: repeatable,
      payload: Signup,
      success: signedIn,
      error: [
        ...refusals,
        wire(SignupsClosed),
        wire(EmailTaken),
        wire(InvalidInviteCode),
        wire(InviteCodeUsed),
        wire(InviteLimitReached),
        ...repeatErrors
      ]
    }),
    HttpApiEndpoint.post("exchange", "/session/exchange", {
      headers: repeatable,
      payload: DeveloperExchange,
      success: signedIn,
      error: [...refusals, ...exchangeErrors]
    }),
    HttpApiEndpoint.post("link", "/session/link", {
      headers: repeatable,
      payload: Schema.Struct({ code: Schema.String.check(Schema.isMaxLength(128)) }),
      success: signedIn,
      error: [...refusals, wire(InvalidCredentials), ...repeatErrors]
    }),
    HttpApiEndpoint.delete("logout", "/session", {
      success: Schema.Struct({}),
      error: [...refusals]
    })
  )
  .prefix("/dashboard")
  .middleware(Requests) {}

/** `/dashboard/session`. */
export class DashboardApi extends HttpApi.make("dashboard").add(DashboardSession) {}

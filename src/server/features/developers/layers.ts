/** Layers of developer accounts, for their endpoints and the dashboard's own session. */
import { Layer } from "effect"
import { DeveloperEmailRepository } from "#sql/developers/emails"
import { InviteRepository } from "#sql/developers/invites"
import { DeveloperFlowRepository } from "#sql/oauth/developer-flows"
import { EmailConfirmation } from "./email-confirmation.ts"
import { DeveloperOAuth } from "./oauth.ts"
import { DeveloperAccounts } from "./service.ts"

/** Developer accounts with the layers they depend on. */
export const DeveloperAccountsLive = Layer.mergeAll(
  DeveloperAccounts.layer,
  DeveloperOAuth.layer,
  EmailConfirmation.layer
).pipe(
  Layer.provide([
    DeveloperEmailRepository.layer,
    DeveloperFlowRepository.layer,
    InviteRepository.layer
  ])
)

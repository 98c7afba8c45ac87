/** Stats, as the service composes them. */
import { Layer } from "effect"
import { StatRepository, WebhookSecretRepository } from "#sql/stats"
import { StatsHttp } from "./handlers.ts"
import { StatReports } from "./service.ts"
import { Verification } from "./verification.ts"
import { WebhookSecrets } from "./webhook-secrets.ts"

export const stats = {
  repositories: Layer.merge(StatRepository.layer, WebhookSecretRepository.layer),
  routes: StatsHttp.pipe(
    Layer.provide(StatReports.layer),
    Layer.provide(Verification.layer),
    Layer.provide(WebhookSecrets.layer)
  )
}

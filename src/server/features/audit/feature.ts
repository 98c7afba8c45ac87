/** The audit log, as the service composes it. */
import { AuditRepository } from "#sql/audit"
import { playerPart } from "#server/platform/player-parts"
import { AuditHttp } from "./handlers.ts"
import { Audit } from "./service.ts"

export const audit = {
  repositories: AuditRepository.layer,
  services: Audit.layer,
  routes: AuditHttp,
  player: playerPart({}, [{ table: "audit", exportedAs: null, deletion: "retained" }])
}

/** The audit log, as the service composes it. */
import { AuditRepository } from "#sql/audit"
import { AuditHttp } from "./handlers.ts"
import { Audit } from "./service.ts"

export const audit = {
  repositories: AuditRepository.layer,
  services: Audit.layer,
  routes: AuditHttp
}

/** Configs, as the service composes them. */
import { Layer } from "effect"
import { ConfigRepository } from "#sql/config"
import { ConfigHttp, DefinitionsHttp } from "./handlers.ts"
import { Configs } from "./service.ts"

export const config = {
  repositories: ConfigRepository.layer,
  services: Configs.layer,
  routes: Layer.merge(ConfigHttp, DefinitionsHttp)
}

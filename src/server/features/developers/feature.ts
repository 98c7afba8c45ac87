/** Developers, as the service composes them. */
import { Layer } from "effect"
import { ClosedSignups } from "#sql/developers/closed-signups"
import { DeveloperRepository } from "#sql/developers/repository"
import { SignInLinkRepository } from "#sql/developers/sign-in-links"
import { DevelopersHttp } from "./handlers.ts"
import { DeveloperSessions } from "./sessions.ts"
import { SignInLinks } from "./sign-in-links.ts"

export const developers = {
  repositories: Layer.mergeAll(
    ClosedSignups.layer,
    DeveloperRepository.layer,
    SignInLinkRepository.layer
  ),
  services: SignInLinks.layer.pipe(Layer.provideMerge(DeveloperSessions.layer)),
  routes: DevelopersHttp
}

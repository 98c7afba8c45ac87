/** Finds a developer as the operator names one: by id or by email address. */
import { Effect, Schema } from "effect"
import { DeveloperId } from "#rpc/ids"
import { DeveloperRepository } from "#sql/developers/repository"
import { emailForms } from "./email-forms.ts"

const isDeveloperId = Schema.is(DeveloperId)

export const findDeveloper = (name: string) =>
  Effect.flatMap(DeveloperRepository, (developers) =>
    isDeveloperId(name) ? developers.find(name) : developers.findByEmail(emailForms(name))
  )

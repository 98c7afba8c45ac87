/** Errors of projects and their keys. */
import { Schema } from "effect"
import { coded, detailed } from "./wire.ts"

/** The project name looks like the service or its staff. Choose another name. */
export class NameReserved extends coded<NameReserved>()(
  "name_reserved",
  400,
  "This name is reserved."
) {}

/** The developer is a member of the maximum number of projects. Delete one first. */
export class TooManyProjects extends detailed<TooManyProjects>()(
  "too_many_projects",
  409,
  "You have too many projects.",
  { limit: Schema.Finite }
) {}

/** The environment has the maximum number of keys. Revoke one first. */
export class TooManyKeys extends detailed<TooManyKeys>()(
  "too_many_keys",
  409,
  "This environment has too many keys.",
  { limit: Schema.Finite }
) {}

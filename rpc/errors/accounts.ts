/** Errors of accounts: signing up, signing in, proving who one is (spec sections 4.9, 5 and 7). */
import { coded } from "./wire.ts"

/** The email, the password or the proof is wrong; which of them is never said. */
export class InvalidCredentials extends coded<InvalidCredentials>()(
  "invalid_credentials",
  401,
  "The email or the password is wrong."
) {}

/** There is an account of this email already. */
export class EmailTaken extends coded<EmailTaken>()(
  "email_taken",
  409,
  "There is an account of this email already."
) {}

/** The code, or what proves that it is the caller's, is wrong, spent or expired; which is never said. */
export class InvalidCode extends coded<InvalidCode>()(
  "invalid_code",
  400,
  "The code is wrong, spent or expired."
) {}

/** Nobody else can sign up here; `SVC_SIGNUPS` opens it. */
export class SignupsClosed extends coded<SignupsClosed>()(
  "signups_closed",
  403,
  "Signing up is closed here."
) {}

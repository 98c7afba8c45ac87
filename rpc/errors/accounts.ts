/** Errors of accounts: sign-up, sign-in and proofs of identity. */
import { coded } from "./wire.ts"

/** The email, the password or another proof is wrong. The response never says which. Ask the user again. */
export class InvalidCredentials extends coded<InvalidCredentials>()(
  "invalid_credentials",
  401,
  "The email or the password is wrong."
) {}

/** An account with this email exists. Offer sign-in or a password reset. */
export class EmailTaken extends coded<EmailTaken>()(
  "email_taken",
  409,
  "An account with this email already exists."
) {}

/** The code or its verifier is wrong, used or expired. The response never says which. Get a new code. */
export class InvalidCode extends coded<InvalidCode>()(
  "invalid_code",
  400,
  "The code is wrong, used or expired."
) {}

/** This deployment accepts no new developers. The operator can set `SVC_SIGNUPS`, or has closed sign-up. */
export class SignupsClosed extends coded<SignupsClosed>()(
  "signups_closed",
  403,
  "Sign-up is closed on this deployment."
) {}

/** The player already has an email. Change the password instead, or unlink the email first. */
export class EmailAlreadyLinked extends coded<EmailAlreadyLinked>()(
  "email_already_linked",
  409,
  "This player already has an email."
) {}

/** The deployment cannot send mail, or the outbox is full. The operator sets `SMTP_URL`; retry later. */
export class MailUnavailable extends coded<MailUnavailable>()(
  "mail_unavailable",
  503,
  "This deployment cannot send mail now."
) {}

/** Error codes of invite codes. */
import { coded } from "./wire.ts"

/** The invite code does not exist. Ask for another one. */
export class InvalidInviteCode extends coded<InvalidInviteCode>()(
  "invalid_invite_code",
  400,
  "This invite code is not valid."
) {}

/** Another developer has used the invite code. Ask for another one. */
export class InviteCodeUsed extends coded<InviteCodeUsed>()(
  "invite_code_used",
  409,
  "This invite code has been used."
) {}

/** The invite programme is full. */
export class InviteLimitReached extends coded<InviteLimitReached>()(
  "invite_limit_reached",
  409,
  "No more invites can be redeemed."
) {}

/** Invite credit is granted once for each account. */
export class AlreadyRedeemed extends coded<AlreadyRedeemed>()(
  "already_redeemed",
  409,
  "This account has already redeemed an invite."
) {}

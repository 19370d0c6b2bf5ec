/** What is to happen with an add-on on one cluster. Pure. */

/** What is recorded of an add-on on one cluster, compared with what is wanted. */
export interface Recorded {
  /** Its removal has begun, has failed and is to be tried again, or is over. */
  readonly removal?: 'begun' | 'again' | 'done' | undefined;
  /** It was once installed successfully. */
  readonly installed: boolean;
  /** What cannot be changed in place, such as the name of the release, differs. */
  readonly isOther: boolean;
  /** Version, source or values differ. */
  readonly changed: boolean;
}

export type RolloutAction = 'create' | 'update' | 'reinstall' | 'delete' | 'none';

/** `once`: what was installed is never changed, and never removed because a cluster is no longer selected. */
export function actionOf(selected: boolean, once: boolean, recorded: Recorded | undefined): RolloutAction {
  if (!selected) {
    const isLeft = recorded === undefined || recorded.removal === 'begun' || recorded.removal === 'done';
    return isLeft || once ? 'none' : 'delete';
  }
  if (recorded === undefined || recorded.removal === 'done') return 'create';
  const { removal, installed, isOther, changed } = recorded;
  if (removal !== undefined && !isOther) return 'update';
  if (removal === 'begun') return 'none';
  if (once && installed) return 'none';
  if (isOther && !once) return 'reinstall';
  return changed ? 'update' : 'none';
}

/** What the place of a folder store says. */
import type { Store } from './store.ts';

/** Of every folder store of this machine. */
export const FOLDER_SERVER = 'file:';

/** True for a store whose objects lie in a folder of this machine. */
export function isFolderStore({ place }: Pick<Store, 'place'>): boolean {
  return place.server === FOLDER_SERVER;
}

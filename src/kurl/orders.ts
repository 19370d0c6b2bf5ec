/** The order of versions that a repository gets from kURL's lists. Pure. */
import type { AddonTree } from '../core/ref.ts';
import { folderName } from '../spec/installer.ts';
import { placeOf, type Tell } from './finding.ts';
import { VERSION_LISTS, type VersionLists } from './version-lists.ts';

export interface VersionOrder {
  readonly tree: AddonTree;
  readonly name: string;
  /** Those that have a folder, in the order of the list. */
  readonly versions: readonly string[];
}

export interface AddonVersions {
  readonly tree: AddonTree;
  readonly name: string;
  /** That have a folder. */
  readonly versions: readonly string[];
}

/** One for each add-on whose name is a key of the lists; the others descend, as they do in kURL's catalogue. */
export function versionOrders(
  addons: readonly AddonVersions[],
  versions: VersionLists | undefined,
  tell: Tell,
): readonly VersionOrder[] {
  const lists = versions?.lists;
  if (lists === undefined) {
    tell(
      'note',
      'order',
      VERSION_LISTS,
      'not there: the latest version of each add-on is its greatest',
      placeOf(VERSION_LISTS),
    );
    return [];
  }
  return addons.flatMap(({ tree, name, versions: there }): readonly VersionOrder[] => {
    const list = lists.get(name);
    if (list === undefined) {
      tellUnlisted(name, lists, tell);
      return [];
    }
    const order = list.filter((version) => there.includes(version));
    const gone = list.filter((version) => !there.includes(version));
    const more = there.filter((version) => !list.includes(version));
    const place = placeOf(VERSION_LISTS);
    if (gone.length > 0) tell('note', 'order', name, `listed, but without a folder: ${some(gone)}`, place);
    if (more.length > 0) tell('note', 'order', name, `not listed, so behind those that are: ${some(more)}`, place);
    return order.length === 0 ? [] : [{ tree, name, versions: order }];
  });
}

function tellUnlisted(name: string, lists: VersionLists['lists'], tell: Tell): void {
  const key = [...lists.keys()].find((one) => one !== name && folderName(one) === name);
  const why = key === undefined ? 'it has no list' : `its list is called ${key}, which kURL's catalogue does not find`;
  tell('note', 'order', name, `the latest is the greatest version: ${why}`, placeOf(VERSION_LISTS));
}

const MOST_NAMED = 6;

function some(names: readonly string[]): string {
  const more = names.length - MOST_NAMED;
  return `${names.slice(0, MOST_NAMED).join(', ')}${more > 0 ? ` and ${more} more` : ''}`;
}

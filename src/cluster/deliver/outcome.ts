/** What a delivery reports. */
import type { CurlewError } from '../../core/errors.ts';
import { fieldChanges, type FieldChange } from '../channel/difference.ts';
import { fieldsOf } from '../../core/json.ts';
import type { ObjectPreview } from './apply.ts';
import { titleOfObject, type AddonObject } from './addon-objects.ts';
import { KEPT, type Orphan } from './prune.ts';

export interface ChangedObject {
  /** `Deployment web/frontend` */
  readonly object: string;
  readonly change: 'create' | 'change' | 'delete';
  readonly fields: readonly FieldChange[];
}

/** What came, or would come, of delivering an add-on. */
export interface Outcome {
  readonly state: 'unchanged' | 'planned' | 'applied' | 'failed';
  readonly objects: readonly ChangedObject[];
  /** Objects that are no longer in the manifest and stay, and why. */
  readonly orphans: readonly { readonly object: string; readonly why: string }[];
  /** Objects that another manager has changed, which stay so: what applying them would change. */
  readonly drift: readonly ChangedObject[];
  /** Nodes that must be replaced for the change to take effect. */
  readonly nodes: readonly string[];
  readonly errors: readonly Trouble[];
}

export interface Trouble {
  readonly message: string;
  readonly hint: string | undefined;
}

export function outcomeOf(state: Outcome['state'], more: Partial<Outcome> = {}): Outcome {
  return { objects: [], orphans: [], drift: [], nodes: [], errors: [], ...more, state };
}

export function troubleOf({ message, hint }: CurlewError): Trouble {
  return { message, hint };
}

export function changedObjects(previews: readonly ObjectPreview[]): readonly ChangedObject[] {
  return previews.flatMap(({ object, change, fields, error }) =>
    change === 'same' || error !== undefined
      ? []
      : [{ object: titleOfObject(object), change, fields: change === 'create' ? [] : fields }],
  );
}

export function isDeleted({ stays }: Orphan): boolean {
  return stays === undefined;
}

export function deletion({ title }: Orphan): ChangedObject {
  return { object: title, change: 'delete', fields: [] };
}

export function retainedOrphan({ title, stays }: Orphan): readonly Outcome['orphans'][number][] {
  return stays === undefined ? [] : [{ object: title, why: stays }];
}

/** From one revision to the next. */
export function manifestChanges(
  before: readonly AddonObject[],
  after: readonly AddonObject[],
): readonly ChangedObject[] {
  const old = new Map(before.map((object) => [object.key, object]));
  const keys = new Set(after.map(({ key }) => key));
  const changed = after.flatMap((object): readonly ChangedObject[] => {
    const known = old.get(object.key);
    const fields = known === undefined ? [] : fieldChanges(known.value, object.value);
    if (known !== undefined && fields.length === 0) return [];
    return [{ object: titleOfObject(object), change: known === undefined ? 'create' : 'change', fields }];
  });
  const gone = before.filter(({ key, value }) => !keys.has(key) && !isKept(value));
  return [
    ...changed,
    ...gone.map((object): ChangedObject => ({ object: titleOfObject(object), change: 'delete', fields: [] })),
  ];
}

function isKept({ metadata }: AddonObject['value']): boolean {
  return fieldsOf(fieldsOf(metadata)['annotations'])[KEPT] === 'keep';
}

/** All specs of a run in kURL's order: built in, the vendor's, those of add-ons, those given by hand. Pure. */
import { stringify } from 'yaml';
import type { Diagnostic } from '../../core/diagnostic.ts';
import { CurlewError } from '../../core/errors.ts';
import { ORDER_ON_NODE } from '../../spec/order.ts';
import { isJsonObject } from '../../formats/yaml/yaml.ts';
import { builtInSpec } from './built-in.ts';
import { parsePreflight } from './parse.ts';
import { settingText, templateData, versionOf, type Situation } from './situation.ts';
import type { HostPreflight } from './spec.ts';

/** The file in a package. */
export const HOST_PREFLIGHT_YAML = 'host-preflight.yaml';
/** Most bytes of a spec that are read. */
export const SPEC_LIMIT: number = 1 << 20;

export interface SpecText {
  /** For messages. */
  readonly file: string;
  readonly text: string;
}

export interface AddonSpec extends SpecText {
  readonly addon: string;
}

export interface AssembleOptions {
  /** In the order in which they are installed. */
  readonly addons: readonly AddonSpec[];
  /** Named by hand: they come last. */
  readonly others: readonly SpecText[];
  /** The built-in checks are those of a node of Kubernetes: without that in the installer spec they are left out anyway. */
  readonly builtIn: boolean;
}

export interface Assembled {
  readonly specs: readonly HostPreflight[];
  /** Remarks; mistakes are thrown. */
  readonly warnings: readonly Diagnostic[];
}

/**
 * Reads all specs; mistakes of all of them are one `SPEC_INVALID`. The setting `kurl.excludeBuiltinHostPreflights` leaves
 * out the built-in checks and those of add-ons, as kURL does; the vendor's stay.
 */
export function assembleSpecs(situation: Situation, { addons, others, builtIn }: AssembleOptions): Assembled {
  const data = templateData(situation);
  const withoutOwn = settingText(situation, 'kurl', 'excludeBuiltinHostPreflights') !== '';
  const texts = [...vendorSpec(situation), ...(withoutOwn ? [] : inKurlOrder(addons)), ...others];
  const parsed = texts.map(({ file, text }) => ({ file, ...parsePreflight(file, text, data) }));
  const diagnostics = parsed.flatMap((one) => one.diagnostics);
  const broken = parsed.filter(({ preflight }) => preflight === undefined);
  if (broken.length > 0) {
    const files = broken.map(({ file }) => file).join(', ');
    throw new CurlewError('SPEC_INVALID', `read host preflights: ${files}: not valid`, { diagnostics });
  }
  const own = builtIn && !withoutOwn && versionOf(situation, 'kubernetes') !== '' ? [builtInSpec(situation)] : [];
  return { specs: [...own, ...parsed.flatMap(({ preflight }) => preflight ?? [])], warnings: diagnostics };
}

/** Add-ons as kURL asks them, container runtimes last. */
function inKurlOrder(addons: readonly AddonSpec[]): readonly AddonSpec[] {
  const rank = ({ addon }: AddonSpec): number => {
    const at = ORDER_ON_NODE.indexOf(addon);
    if (addon === 'containerd' || addon === 'docker') return ORDER_ON_NODE.length + 1;
    return at === -1 ? ORDER_ON_NODE.length : at;
  };
  return addons.toSorted((a, b) => rank(a) - rank(b));
}

/** The spec inside of the installer spec, as a text, since its values may be templates. */
function vendorSpec({ installer }: Situation): readonly SpecText[] {
  const settings = installer?.sections.find(({ specName }) => specName === 'kurl')?.settings ?? {};
  const { hostPreflights } = settings;
  if (hostPreflights === undefined) return [];
  const file = 'kurl.hostPreflights of the installer spec';
  if (isJsonObject(hostPreflights) && hostPreflights['apiVersion'] === 'troubleshoot.sh/v1beta1') {
    throw new CurlewError('SPEC_INVALID', `${file}: v1beta1 is not supported`, { hint: 'use troubleshoot.sh/v1beta2' });
  }
  return [{ file, text: stringify(hostPreflights, { lineWidth: 0, aliasDuplicateObjects: false }) }];
}

/** All specs of a run in kURL's order: built-in, the vendor's, those of add-ons, those of the command line. Pure. */
import { stringify } from 'yaml';
import type { Diagnostic } from '../../core/diagnostic.ts';
import { CurlewError } from '../../core/errors.ts';
import { ORDER_ON_NODE } from '../../spec/order.ts';
import { isJsonObject } from '../../formats/yaml/yaml.ts';
import { builtInSpec } from './built-in.ts';
import { parsePreflight } from './parse-preflight.ts';
import { settingText, templateData, versionIn, type Situation } from './situation.ts';
import type { HostPreflight } from './spec.ts';

/** Maximum bytes of a spec. */
export const SPEC_LIMIT: number = 1 << 20;

export interface PreflightText {
  /** For messages. */
  readonly file: string;
  readonly text: string;
}

export interface AddonSpec extends PreflightText {
  readonly addon: string;
}

export interface AssembleOptions {
  /** Add-ons in the order of installation. */
  readonly addons: readonly AddonSpec[];
  /** Specs that the operator named; they are last. */
  readonly others: readonly PreflightText[];
  /** Include the built-in checks. They are for Kubernetes nodes, so they are left out if the spec has no Kubernetes. */
  readonly builtIn: boolean;
}

export interface Assembled {
  readonly specs: readonly HostPreflight[];
  /** Warnings; errors are thrown. */
  readonly warnings: readonly Diagnostic[];
}

/**
 * Parses all specs; their errors are thrown as one `SPEC_INVALID`. The setting `kurl.excludeBuiltinHostPreflights` disables the
 * built-in checks and those of add-ons, as in kURL; the vendor's stay.
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
    throw new CurlewError('SPEC_INVALID', `cannot read host preflights: ${files}: not valid`, { diagnostics });
  }
  const own = builtIn && !withoutOwn && versionIn(situation, 'kubernetes') !== '' ? [builtInSpec(situation)] : [];
  return { specs: [...own, ...parsed.flatMap(({ preflight }) => preflight ?? [])], warnings: diagnostics };
}

/** Add-ons in kURL's order, container runtimes last. */
function inKurlOrder(addons: readonly AddonSpec[]): readonly AddonSpec[] {
  const rank = ({ addon }: AddonSpec): number => {
    const at = ORDER_ON_NODE.indexOf(addon);
    if (addon === 'containerd' || addon === 'docker') return ORDER_ON_NODE.length + 1;
    return at === -1 ? ORDER_ON_NODE.length : at;
  };
  return addons.toSorted((a, b) => rank(a) - rank(b));
}

/** The spec inside the installer spec, as text because its values may be templates. */
function vendorSpec({ installer }: Situation): readonly PreflightText[] {
  const settings = installer?.sections.find(({ specName }) => specName === 'kurl')?.settings ?? {};
  const { hostPreflights } = settings;
  if (hostPreflights === undefined) return [];
  const file = 'kurl.hostPreflights of the installer spec';
  if (isJsonObject(hostPreflights) && hostPreflights['apiVersion'] === 'troubleshoot.sh/v1beta1') {
    throw new CurlewError('SPEC_INVALID', `${file}: v1beta1 is not supported`, { hint: 'use troubleshoot.sh/v1beta2' });
  }
  return [{ file, text: stringify(hostPreflights, { lineWidth: 0, aliasDuplicateObjects: false }) }];
}

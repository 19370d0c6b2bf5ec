/** The server and the region of a profile in the AWS configuration file, which the SDK does not read for a profile by name. Pure. */
export interface AwsProfile {
  readonly endpoint: string | undefined;
  readonly region: string | undefined;
}

const SECTION = /^\[\s*(?:(profile|services)\s+)?["']?([^\]"']+?)["']?\s*\]/;
const ENTRY = /^(\s*)([^\s=#;]+)\s*=\s*(.*?)\s*(?:\s[#;].*)?$/;

/**
 * Settings of a profile (docs.aws.amazon.com/sdkref, "Service-specific endpoints"): the endpoint of S3 in its `services` precedes its
 * own `endpoint_url`.
 */
export function readAwsProfile(text: string, profile = 'default'): AwsProfile {
  const sections = sectionsOf(text);
  const own = sections.get(profile === 'default' && sections.has('default') ? 'default' : `profile ${profile}`);
  const services = sections.get(`services ${own?.get('services') ?? ''}`);
  const isIgnored = own?.get('ignore_configured_endpoint_urls')?.toLowerCase() === 'true';
  const endpoint = services?.get('s3.endpoint_url') ?? own?.get('endpoint_url');
  return { endpoint: isIgnored ? undefined : endpoint, region: own?.get('region') };
}

/** Keys of indented lines have the key above them in front: `s3.endpoint_url`. */
function sectionsOf(text: string): ReadonlyMap<string, ReadonlyMap<string, string>> {
  const sections = new Map<string, Map<string, string>>();
  let section = new Map<string, string>();
  let parent = '';
  for (const line of text.split(/\r?\n/)) {
    const [header, kind, name = ''] = SECTION.exec(line) ?? [];
    const [, indent, key = '', value = ''] = ENTRY.exec(line) ?? [];
    if (header !== undefined) {
      section = new Map();
      sections.set(kind === undefined ? name : `${kind} ${name}`, section);
    } else if (indent === '') {
      parent = key;
      section.set(key, value);
    } else if (indent !== undefined) section.set(`${parent}.${key}`, value);
  }
  return sections;
}

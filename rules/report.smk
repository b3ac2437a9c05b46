# Reports: tables and figures beside the papers' numbers, runs in MLflow, verdicts on claims, the site.
#   in: measurements/      out: tables/, figures/, tracking/, claims.json, site/


rule render:
    input:
        batches,
    output:
        csv=f"{R}/tables/{{experiment}}.csv",
        md=f"{R}/tables/{{experiment}}.md",
        tex=f"{R}/tables/{{experiment}}.tex",
        html=f"{R}/tables/{{experiment}}.html",
        svg=f"{R}/figures/{{experiment}}.svg",
    log:
        f"{R}/logs/render/{{experiment}}.log",
    conda:
        "../environment.yml"
    params:
        shown=shown,
        code=code_digest("agglearn.reporting.render"),
    script:
        "../workflow/scripts/stage.py"


rule track:
    input:
        batches,
    output:
        update(f"{R}/tracking/{{experiment}}.json"),
    log:
        f"{R}/logs/track/{{experiment}}.log",
    conda:
        "../environment.yml"
    resources:
        tracking=1,
    params:
        uri=config["tracking"]["uri"],
        attempt=sending_attempt,
    script:
        "../workflow/scripts/stage.py"


rule judge:
    input:
        claimed,
    output:
        f"{R}/claims.json",
    log:
        f"{R}/logs/judge.log",
    conda:
        "../environment.yml"
    params:
        claims=claims_digest,
        code=code_digest("agglearn.reporting.claims"),
    script:
        "../workflow/scripts/stage.py"


rule site:
    input:
        tables(plan.experiments),
        receipts(plan.experiments),
        f"{R}/claims.json",
    output:
        directory(f"{R}/site"),
    log:
        f"{R}/logs/site.log",
    conda:
        "../environment.yml"
    params:
        shown=everything_shown,
        code=code_digest("agglearn.reporting.site"),
        templates=template_digest,
    script:
        "../workflow/scripts/stage.py"

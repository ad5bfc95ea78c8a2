-- pipeline: revenue_by_country
-- sources: {domestic: shop.analytics.domestic_orders, abroad: shop.analytics.foreign_orders}
-- output: shop.analytics.revenue_by_country
-- strategy: replace
-- primary_key: [country]
with orders as (
    select * from domestic
    union all
    select * from abroad
)
select country,
       count(*) as orders,
       cast(sum(amount) as decimal(18, 2)) as revenue,
       max(ordered_at) as last_order
from orders
where status <> 'cancelled'
group by country

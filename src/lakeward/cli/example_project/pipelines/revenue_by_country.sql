-- pipeline: revenue_by_country
-- sources: {orders: shop.raw.orders}
-- output: shop.analytics.revenue_by_country
-- strategy: replace
-- primary_key: [country]
select country,
       count(*) as orders,
       cast(sum(amount) as decimal(18, 2)) as revenue,
       max(ordered_at) as last_order
from orders
where status <> 'cancelled'
group by country
